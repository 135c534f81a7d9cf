import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Corpus, sourceNames } from '../data/corpus.js'
import { Connection } from '../lib/connection.js'
import { Latencies } from '../lib/latency.js'
import type { BenchOptions } from '../lib/options.js'
import type { Check, Metric, ScenarioResult } from '../lib/report.js'
import { NEIGHBOUR, startVictoriaLogs, type VictoriaLogs } from '../lib/victorialogs.js'
import { measureProtocols } from './beside-protocols.js'
import { runIngest } from './ingest.js'
import { runProtocols } from './protocols.js'
import { RARE_WORD, rareLines } from './queries.js'
import { runQuery } from './query.js'

const INSERT =
  'POST /insert/jsonline?_stream_fields=source&_time_field=timestamp&_msg_field=message HTTP/1.1\r\n' +
  'Content-Type: application/stream+json\r\n'
const MIB = 1024 * 1024
const WARM_REQUESTS = 3
const MIN_REQUESTS = 10

/** Figures by the service's names. Where VictoriaLogs reports one figure, those of the service are summed. */
const OF_INGEST = ['acknowledged', 'CPU service + ClickHouse', 'disk']

type Options = BenchOptions & { readonly sources: number; readonly spanS: number }

/**
 * Sends the same events and questions to VictoriaLogs and to the service, one after the other on the same machine, so
 * that their figures can be compared. VictoriaLogs neither mines nor deduplicates, and acknowledges before it writes.
 */
export async function runBeside(asked: BenchOptions, seed: number): Promise<ScenarioResult> {
  const options = { ...asked, sources: asked.sources ?? 16, spanS: asked.spanS ?? 3600 }
  const { events, connections, sources, spanS, victoriaLogs } = options
  const facts = { events, connections, sources, spanS }
  const result = { scenario: 'beside', options: facts, curves: [] }
  if (victoriaLogs === null) {
    const skipped = ['beside: needs --victorialogs, the path of its program']
    return { ...result, metrics: [], checks: [], skipped }
  }
  if (options.protocols.length > 0) {
    const theirs = await measureProtocols(victoriaLogs, options, seed)
    const own = await runProtocols(options, seed)
    const metrics = [...theirs.metrics, ...own.metrics.map(besideProtocol)]
    return { ...result, metrics, checks: [...theirs.checks, ...own.checks], skipped: [] }
  }
  const neighbour = await measureNeighbour(victoriaLogs, options, seed)
  const ingest = await runIngest({ ...options, loadShare: 0 }, seed)
  const own = ingest.metrics.filter(({ name }) => OF_INGEST.includes(name))
  const data = mkdtempSync(join(tmpdir(), 'bench-beside-'))
  const questions = new RegExp(`^(${Object.keys(QUESTIONS).join('|')})$`)
  const asking = await runQuery({ ...options, clients: 0, data, questions }, seed)
  const answers = asking.metrics.filter(isAnswer)
  const checks = [...neighbour.checks, ...ingest.checks, ...asking.checks]
  const metrics = [...neighbour.metrics, ...[...own, ...answers].map(besideNeighbour)]
  return { ...result, metrics, checks, skipped: ingest.skipped }
}

/** The questions of VictoriaLogs by the service's names: LogsQL and further arguments. */
const QUESTIONS: Readonly<Record<string, readonly Question[]>> = {
  'severity breakdown 24h': [{ logsQl: '_time:24h | stats by (severity) count()' }],
  'time series 24h': [{ logsQl: '_time:24h', path: 'hits', more: { step: '1h' } }],
  'newest 50 errors of a source': sourceNames(16).map((name) => ({
    logsQl: `_time:24h {source=${JSON.stringify(name)}} severity:ERROR`,
    more: { limit: '50' },
  })),
  'rare word, 30 days': [{ logsQl: `_time:30d ${RARE_WORD}`, more: { limit: '50' } }],
  'common word': ['failed', 'connection'].map((word) => ({
    logsQl: `_time:24h ${word}`,
    more: { limit: '50' },
  })),
}

interface Question {
  readonly logsQl: string
  readonly path?: string
  readonly more?: Readonly<Record<string, string>>
}

const isAnswer = ({ name }: Metric): boolean =>
  Object.keys(QUESTIONS).some((one) => name === `${one}, p50` || name === `${one}, p95`)

const besideNeighbour = (metric: Metric): Metric => {
  const name = metric.name.replace(/^CPU .*/, 'CPU')
  return { ...metric, limit: { metric: `${NEIGHBOUR}: ${name}`, label: NEIGHBOUR } }
}

/** The CPU of VictoriaLogs is compared with that of the service and ClickHouse together. */
function besideProtocol(metric: Metric): Metric {
  const [, protocol] = /^(\w+): CPU service \+ ClickHouse$/.exec(metric.name) ?? []
  if (protocol === undefined) return metric
  return { ...metric, limit: { metric: `${NEIGHBOUR}: ${protocol}: CPU`, label: NEIGHBOUR } }
}

interface Measured {
  readonly metrics: readonly Metric[]
  readonly checks: readonly Check[]
}

async function measureNeighbour(
  program: string,
  options: Options,
  seed: number,
): Promise<Measured> {
  const bodies = bodiesOf(options, seed)
  const neighbour = await startVictoriaLogs(program)
  const metrics: Metric[] = []
  const add = (name: string, unit: string, sample: number): void =>
    void metrics.push({
      name: `${NEIGHBOUR}: ${name}`,
      unit,
      samples: [sample],
      better: 'info',
    })
  let check: Check
  try {
    await neighbour.settle()
    const [before, startMs] = [neighbour.usage(), performance.now()]
    await sendAll(neighbour, bodies, options.connections)
    add('acknowledged', 'events/s', (options.events / (performance.now() - startMs)) * 1000)
    await neighbour.settle()
    const after = neighbour.usage()
    add('CPU', 'CPU s/M', (after.cpuS - before.cpuS) / (options.events / 1e6))
    add('peak RSS', 'MiB', after.peakRssBytes / MIB)
    check = await checkCount(neighbour, options.events)
    await sendAll(neighbour, [Buffer.from(rareLines(Date.now()).join('\n'))], 1)
    await neighbour.settle()
    for (const [name, questions] of Object.entries(QUESTIONS)) {
      const latencies = await askAll(neighbour, questions, options.durationS)
      for (const at of [50, 95]) add(`${name}, p${at}`, 'ms', latencies.at(at))
    }
  } finally {
    add('disk', 'B/event', (await neighbour.stop()) / options.events)
  }
  return { metrics, checks: [check] }
}

function bodiesOf({ events, sources, spanS, bodyBytes }: Options, seed: number): Buffer[] {
  const spanMs = spanS * 1000
  const corpus = new Corpus({ seed, events, startMs: Date.now() - spanMs, spanMs, sources })
  const bodies: Buffer[] = []
  for (let block = corpus.block(bodyBytes); block !== null; block = corpus.block(bodyBytes))
    bodies.push(block.bytes)
  return bodies
}

/** Each connection sends the next body when the previous one is acknowledged, like the sender of the service. */
async function sendAll(
  { url }: VictoriaLogs,
  bodies: readonly Buffer[],
  connections: number,
): Promise<void> {
  let next = 0
  const lane = async (): Promise<void> => {
    const connection = new Connection(url)
    for (let body = bodies[next++]; body !== undefined; body = bodies[next++]) {
      const { status } = await connection.request(INSERT, body)
      if (status !== 200) throw new Error(`${NEIGHBOUR} answered ${status}`)
    }
    connection.close()
  }
  await Promise.all(Array.from({ length: connections }, lane))
}

async function checkCount(neighbour: VictoriaLogs, events: number): Promise<Check> {
  const counted = await neighbour.count()
  return {
    name: `${NEIGHBOUR} holds all`,
    ok: counted === events,
    detail: `${counted} of ${events}`,
  }
}

async function askAll(
  neighbour: VictoriaLogs,
  questions: readonly Question[],
  durationS: number,
): Promise<Latencies> {
  const latencies = new Latencies()
  const untilMs = performance.now() + durationS * 1000
  for (let i = 0; i < WARM_REQUESTS + MIN_REQUESTS || performance.now() < untilMs; i++) {
    const question = questions[i % questions.length]
    if (question === undefined) throw new Error('bug: no question')
    const startMs = performance.now()
    await neighbour.ask(question.logsQl, question.path, question.more)
    if (i >= WARM_REQUESTS) latencies.record(performance.now() - startMs)
  }
  return latencies
}
