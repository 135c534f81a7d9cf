import { parseArgs } from 'node:util'

import { type BenchProtocol, isBenchProtocol, PROTOCOLS } from '../data/protocol-bodies.js'

/** The options of all scenarios; each scenario reads its own. */
export interface BenchOptions {
  readonly events: number
  readonly connections: number
  readonly bodyBytes: number
  readonly seed: number
  /** Null for the scenario's default. */
  readonly sources: number | null
  readonly spanS: number | null
  /** Tags of each event. */
  readonly attributes: number
  /** In events/s; 0 for as fast as acknowledged. */
  readonly rate: number
  readonly gzip: boolean
  /** The protocols that are measured beside NDJSON; empty for NDJSON only. */
  readonly protocols: readonly BenchProtocol[]
  /** One event per body. */
  readonly small: boolean
  /** The share of the full speed at which latencies are measured; 0 to skip them. */
  readonly loadShare: number
  readonly loadS: number
  readonly workers: number | null
  readonly repeats: number
  readonly durationS: number
  readonly clients: number
  /** The average pause between an answer and the client's next question. */
  readonly pauseMs: number
  /** Matches the names of the questions to ask; null for all. */
  readonly questions: RegExp | null
  /** A permanent directory that later runs reuse; null for a temporary one. */
  readonly data: string | null
  readonly sockets: number
  /** The numbers of shards to compare. */
  readonly shards: readonly number[]
  readonly cpuProf: string | null
  readonly target: RunningTarget | null
  readonly logs: string | null
  readonly nab: string | null
  /** The path of the VictoriaLogs program. */
  readonly victoriaLogs: string | null
}

/** A running deployment. */
export interface RunningTarget {
  readonly api: string
  readonly collector: string
  readonly ingestKey: string
  readonly email: string
  readonly password: string
}

export interface CommandLine {
  readonly words: readonly string[]
  readonly options: BenchOptions
  readonly json: string | null
  readonly html: string | null
}

const FLAGS = {
  events: { type: 'string', doc: 'events to send [1000000]' },
  connections: { type: 'string', doc: 'keep-alive connections [4; 64 with --small]' },
  body: { type: 'string', doc: 'bytes of a body [1048576]' },
  seed: { type: 'string', doc: 'of the generated events [1]' },
  sources: { type: 'string', doc: 'distinct sources [16; query: 100]' },
  span: { type: 'string', doc: 'seconds the event times cover [3600; query: 60 days]' },
  attributes: { type: 'string', doc: 'ingest, query: tags of each event [0]' },
  rate: { type: 'string', doc: 'events/s, 0 = as fast as acknowledged [0]' },
  gzip: { type: 'boolean', doc: 'compress bodies' },
  protocol: {
    type: 'string',
    doc: 'ingest, beside: measure these beside NDJSON: otlp,loki,es,syslog, or all [none]',
  },
  small: { type: 'boolean', doc: 'ingest: one event a body' },
  load: {
    type: 'string',
    doc: 'ingest: share of full speed for the latencies, 0 = leave out [0.8]',
  },
  'load-seconds': { type: 'string', doc: 'ingest: how long that lasts [5]' },
  workers: { type: 'string', doc: 'WORKERS of the service [its default]' },
  repeats: { type: 'string', doc: 'runs of each scenario; medians are shown [3]' },
  duration: {
    type: 'string',
    doc: 'query, http: seconds per measurement, from 0.1; of page the tail takes 30 times that [2]',
  },
  clients: {
    type: 'string',
    doc: 'query: also so many clients with ingest at half load, for 5 durations [0]',
  },
  pause: {
    type: 'string',
    doc: 'query: ms that each of the clients waits before it asks again [0]',
  },
  cold: { type: 'boolean', doc: 'query: no answer serves twice (always so)' },
  questions: {
    type: 'string',
    doc: 'query, hostile: only those whose names match this expression [all]',
  },
  data: {
    type: 'string',
    doc: 'query: folder for the database; kept, and made complete or used again [a temporary one]',
  },
  sockets: { type: 'string', doc: 'ws: WebSockets, of which one in 21 talks [10500]' },
  shards: { type: 'string', doc: 'cluster: numbers of shards [1,2,3]' },
  'cpu-prof': {
    type: 'string',
    doc: 'folder for CPU profiles of the service, by scenario; the top functions are printed',
  },
  logs: {
    type: 'string',
    doc: 'mining: folder of NAME.log and NAME.truth; replay: folder of logs with their own times',
  },
  nab: { type: 'string', doc: 'insights: checkout of github.com/numenta/NAB' },
  victorialogs: {
    type: 'string',
    doc: 'beside: program of VictoriaLogs, which takes and answers the same',
  },
  target: { type: 'string', doc: 'API URL of a running deployment; the next four belong to it' },
  collector: { type: 'string', doc: 'its collector URL' },
  key: { type: 'string', doc: 'its ingest key' },
  email: { type: 'string', doc: 'a user of it' },
  password: { type: 'string', doc: 'its password' },
  json: { type: 'string', doc: 'write the results to this file' },
  html: { type: 'string', doc: 'write a report with plots to this file' },
} as const satisfies Record<string, { readonly type: 'string' | 'boolean'; readonly doc: string }>

export const usage = (): string =>
  [
    'npm run bench [-- ingest | query | mining | insights | ws | tail | page | alerts | http | cluster | scale | beside | hostile] [options]',
    'npm run bench -- compare A.json B.json',
    'npm run bench -- replay --logs FOLDER [--target …]',
    '',
    ...Object.entries(FLAGS).map(([name, { doc }]) => `  --${name.padEnd(13)} ${doc}`),
    '',
  ].join('\n')

/** @throws Error naming the option that is wrong */
export function parseCommandLine(argv: readonly string[]): CommandLine {
  const { values, positionals } = parseArgs({
    args: [...argv],
    options: FLAGS,
    allowPositionals: true,
  })
  const integer = (name: keyof typeof values, fallback: number, min: number): number => {
    const text = values[name]
    const value = text === undefined ? fallback : Number(text)
    if (Number.isInteger(value) && value >= min) return value
    throw new Error(`--${name} ${String(text)} is not an integer of at least ${min}`)
  }
  const number = (
    name: keyof typeof values,
    fallback: number,
    min: number,
    max: number,
  ): number => {
    const text = values[name]
    const value = text === undefined ? fallback : Number(text)
    if (value >= min && value <= max) return value
    throw new Error(`--${name} ${String(text)} is not in ${min}..${max}`)
  }
  const small = values.small === true
  const events = integer('events', small ? 100_000 : 1_000_000, 1)
  return {
    words: positionals,
    json: values.json ?? null,
    html: values.html ?? null,
    options: {
      events,
      connections: integer('connections', small ? 64 : 4, 1),
      bodyBytes: small ? 1 : integer('body', 1024 * 1024, 1),
      seed: integer('seed', 1, 0),
      sources: values.sources === undefined ? null : integer('sources', 1, 1),
      spanS: values.span === undefined ? null : integer('span', 1, 1),
      attributes: integer('attributes', 0, 0),
      rate: integer('rate', 0, 0),
      gzip: values.gzip === true,
      protocols: toProtocols(values.protocol),
      small,
      loadShare: number('load', 0.8, 0, 1),
      loadS: integer('load-seconds', 5, 1),
      workers: values.workers === undefined ? null : integer('workers', 1, 1),
      repeats: integer('repeats', 3, 1),
      durationS: number('duration', 2, 0.1, 3600),
      clients: integer('clients', 0, 0),
      pauseMs: integer('pause', 0, 0),
      questions: values.questions === undefined ? null : toExpression(values.questions),
      data: values.data ?? null,
      sockets: integer('sockets', 10_500, 1),
      shards: toShards(values.shards ?? '1,2,3'),
      cpuProf: values['cpu-prof'] ?? null,
      target: toTarget(values),
      logs: values.logs ?? null,
      nab: values.nab ?? null,
      victoriaLogs: values.victorialogs ?? null,
    },
  }
}

/** The arguments of a command line without their secrets, for reports. */
export const withoutSecrets = (argv: readonly string[]): readonly string[] =>
  argv.map((word, i) =>
    SECRETS.has(argv[i - 1] ?? '') ? '…' : word.replace(/^(--(?:key|password))=.*/s, '$1=…'),
  )

const SECRETS = new Set(['--key', '--password'])

function toExpression(text: string): RegExp {
  try {
    return new RegExp(text)
  } catch {
    throw new Error(`--questions ${text} is not a regular expression`)
  }
}

function toShards(text: string): readonly number[] {
  const shards = text.split(',').map(Number)
  if (shards.every((n) => Number.isInteger(n) && n >= 1 && n <= 9)) return shards
  throw new Error(`--shards ${text} is not a list of numbers in 1..9`)
}

function toProtocols(text: string | undefined): readonly BenchProtocol[] {
  if (text === undefined) return []
  const names = text === 'all' ? PROTOCOLS : text.split(',')
  return names
    .filter((name) => name !== 'ndjson')
    .map((name) => {
      if (isBenchProtocol(name)) return name
      throw new Error(`--protocol ${name} is none of ${PROTOCOLS.join(', ')}, all`)
    })
}

const OF_TARGET = ['collector', 'key', 'email', 'password'] as const

function toTarget(
  values: Readonly<Record<string, string | boolean | undefined>>,
): RunningTarget | null {
  if (values['target'] === undefined) {
    for (const name of OF_TARGET)
      if (values[name] !== undefined) throw new Error(`--${name} needs --target`)
    return null
  }
  const need = (name: (typeof OF_TARGET)[number] | 'target'): string => {
    const value = values[name]
    if (typeof value === 'string') return value
    throw new Error(`--target needs --${name}`)
  }
  const url = (name: 'target' | 'collector'): string => {
    const text = need(name)
    if (URL.canParse(text) && /^https?:\/\//i.test(text)) return text
    throw new Error(`--${name} ${text} is not an http:// or https:// URL`)
  }
  return {
    api: url('target'),
    collector: url('collector'),
    ingestKey: need('key'),
    email: need('email'),
    password: need('password'),
  }
}

/** The settings of the service that the options imply. */
export const settingsOf = ({ workers }: BenchOptions): Record<string, string> =>
  workers === null ? {} : { WORKERS: String(workers) }
