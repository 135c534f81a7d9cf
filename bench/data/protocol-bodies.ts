import { PbfWriter } from 'pbf'

import { SEVERITIES } from '../../src/model/event.js'
import { snappyBlock } from '../../test/support/protobuf.js'
import type { Block, Corpus, CorpusEvent } from './corpus.js'

/** The protocols whose ingest is measured beside NDJSON. */
export const PROTOCOLS = ['ndjson', 'otlp', 'loki', 'es', 'syslog'] as const

export type BenchProtocol = (typeof PROTOCOLS)[number]

export const isBenchProtocol = (name: string): name is BenchProtocol =>
  PROTOCOLS.some((known) => known === name)

/** The requests of a protocol, with the line ends of its head; null for one without requests. */
export const REQUESTS: Readonly<Record<BenchProtocol, string | null>> = {
  ndjson: 'POST /ingest HTTP/1.1\r\nContent-Type: application/x-ndjson\r\n',
  otlp: 'POST /v1/logs HTTP/1.1\r\nContent-Type: application/x-protobuf\r\n',
  loki: 'POST /loki/api/v1/push HTTP/1.1\r\nContent-Type: application/x-protobuf\r\n',
  es: 'POST /_bulk HTTP/1.1\r\nContent-Type: application/x-ndjson\r\n',
  syslog: null,
}

/** An event with its message as plain text. */
interface Item {
  readonly timestampMs: number
  readonly source: string
  readonly host: string
  readonly severity: number
  readonly message: string
  readonly tags: readonly (readonly [string, unknown])[]
}

/** The approximate bytes of an event beside its message in a protocol's body. */
const HEAD_BYTES = 120

/** Returns the next events as a body of about `maxBytes`; null after the last. */
export function protocolBlock(
  corpus: Corpus,
  protocol: BenchProtocol,
  { maxBytes, see }: { maxBytes: number; see: (event: Readonly<CorpusEvent>) => void },
): Block | null {
  if (protocol === 'ndjson') return corpus.block(maxBytes, see)
  const items: Item[] = []
  for (let bytes = 0; bytes < maxBytes;) {
    const event = corpus.next()
    if (event === null) break
    see(event)
    items.push(toItem(event))
    bytes += event.message.length + event.tags.length + HEAD_BYTES
  }
  return items.length === 0 ? null : { bytes: WRITERS[protocol](items), events: items.length }
}

function toItem({ message, tags, ...event }: Readonly<CorpusEvent>): Item {
  const parsed: unknown = tags === '' ? {} : JSON.parse(tags)
  return {
    ...event,
    message: String(JSON.parse(`"${message}"`)),
    tags: Object.entries(Object(parsed) as object),
  }
}

const WRITERS: Readonly<
  Record<Exclude<BenchProtocol, 'ndjson'>, (items: readonly Item[]) => Buffer>
> = { otlp: otlpBody, loki: lokiBody, es: bulkBody, syslog: syslogBody }

/** Items of one source and host belong together, as those of one process do. */
const grouped = (items: readonly Item[], keyOf: (item: Item) => string): readonly Item[][] => {
  const groups = new Map<string, Item[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return [...groups.values()]
}

/** Severity numbers of OpenTelemetry and levels of syslog, by the index of the severity. */
const OTEL_NUMBERS = SEVERITIES.map((_, i) => 5 + 4 * i)
const SYSLOG_LEVELS: Readonly<Record<string, number>> = {
  DEBUG: 7,
  INFO: 6,
  WARNING: 4,
  ERROR: 3,
  CRITICAL: 2,
}

function otlpBody(items: readonly Item[]): Buffer {
  const pbf = new PbfWriter()
  const text = (value: string, to: PbfWriter): void => to.writeStringField(1, value)
  const any = (value: unknown, to: PbfWriter): void =>
    typeof value === 'number' ? to.writeVarintField(3, value) : text(String(value), to)
  const attribute = ([key, value]: readonly [string, unknown], to: PbfWriter): void => {
    to.writeStringField(1, key)
    to.writeMessage(2, any, value)
  }
  const record = ({ timestampMs, severity, message, tags }: Item, to: PbfWriter): void => {
    to.writeFixed64Field(1, timestampMs * 1e6)
    to.writeVarintField(2, OTEL_NUMBERS[severity] ?? 9)
    to.writeStringField(3, SEVERITIES[severity] ?? '')
    to.writeMessage(5, text, message)
    for (const each of tags) to.writeMessage(6, attribute, each)
    to.writeFixed64Field(11, timestampMs * 1e6)
  }
  const scope = (group: readonly Item[], to: PbfWriter): void => {
    for (const item of group) to.writeMessage(2, record, item)
  }
  const describe = ([{ source, host } = NOBODY]: readonly Item[], to: PbfWriter): void => {
    to.writeMessage(1, attribute, ['service.name', source] as const)
    to.writeMessage(1, attribute, ['host.name', host] as const)
  }
  const resource = (group: readonly Item[], to: PbfWriter): void => {
    to.writeMessage(1, describe, group)
    to.writeMessage(2, scope, group)
  }
  for (const group of grouped(items, ({ source, host }) => `${source} ${host}`))
    pbf.writeMessage(1, resource, group)
  return Buffer.from(pbf.finish())
}

const NOBODY: Item = {
  timestampMs: 0,
  source: '',
  host: '',
  severity: 0,
  message: '',
  tags: [],
}

function lokiBody(items: readonly Item[]): Buffer {
  const pbf = new PbfWriter()
  const time = (ms: number, to: PbfWriter): void => {
    to.writeVarintField(1, Math.floor(ms / 1000))
    to.writeVarintField(2, (ms % 1000) * 1e6)
  }
  const pair = ([name, value]: readonly [string, unknown], to: PbfWriter): void => {
    to.writeStringField(1, name)
    to.writeStringField(2, String(value))
  }
  const entry = ({ timestampMs, message, tags }: Item, to: PbfWriter): void => {
    to.writeMessage(1, time, timestampMs)
    to.writeStringField(2, message)
    for (const each of tags) to.writeMessage(3, pair, each)
  }
  const labelsOf = ([{ source, host, severity } = NOBODY]: readonly Item[]): string =>
    `{service_name="${source}", host="${host}", level="${SEVERITIES[severity]?.toLowerCase()}"}`
  const stream = (group: readonly Item[], to: PbfWriter): void => {
    to.writeStringField(1, labelsOf(group))
    for (const item of group) to.writeMessage(2, entry, item)
  }
  const groups = grouped(items, ({ source, host, severity }) => `${source} ${host} ${severity}`)
  for (const group of groups) pbf.writeMessage(1, stream, group)
  return snappyBlock(pbf.finish())
}

function bulkBody(items: readonly Item[]): Buffer {
  let text = ''
  for (const { timestampMs, source, host, severity, message, tags } of items) {
    const time = new Date(timestampMs).toISOString()
    const level = SEVERITIES[severity]?.toLowerCase()
    const document = {
      '@timestamp': time,
      message,
      level,
      host,
      ...(tags.length === 0 ? {} : { tags: Object.fromEntries(tags) }),
    }
    text += `{"create":{"_index":"${source}"}}\n${JSON.stringify(document)}\n`
  }
  return Buffer.from(text)
}

function syslogBody(items: readonly Item[]): Buffer {
  let text = ''
  for (const { timestampMs, source, host, severity, message, tags } of items) {
    const priority = 16 * 8 + (SYSLOG_LEVELS[SEVERITIES[severity] ?? ''] ?? 6)
    const data = tags.map(([name, value]) => `${name}="${String(value)}"`).join(' ')
    const structured = data === '' ? '-' : `[tags@32473 ${data}]`
    const time = new Date(timestampMs).toISOString()
    text += `<${priority}>1 ${time} ${host} ${source} - - ${structured} ${message.replaceAll('\n', ' ')}\n`
  }
  return Buffer.from(text)
}
