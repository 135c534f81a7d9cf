import type { BodyFormat, ProtocolFormat } from '../block.js'
import { betterStack } from './better-stack.js'
import { datadog } from './datadog.js'
import { elasticsearch } from './elasticsearch/elasticsearch.js'
import { forward } from './forward/forward.js'
import { gelf } from './gelf/gelf.js'
import { journal } from './journal/journal.js'
import { lines } from './lines.js'
import { logScale } from './logscale.js'
import { loki } from './loki.js'
import { ndjson } from './ndjson.js'
import { newRelic } from './new-relic.js'
import { openObserve } from './openobserve.js'
import { otlp } from './otlp/otlp.js'
import type { BodyParser, Protocol } from './protocol.js'
import { seq } from './seq.js'
import { splunk } from './splunk.js'
import { syslog } from './syslog/protocol.js'

/** Every protocol, with a port of its own or on the collector's. */
export const PROTOCOLS: readonly Protocol[] = [
  ndjson,
  otlp,
  elasticsearch,
  loki,
  splunk,
  datadog,
  betterStack,
  journal,
  gelf,
  newRelic,
  logScale,
  openObserve,
  seq,
  syslog,
  forward,
  lines,
]

const PARSERS: ReadonlyMap<string, BodyParser> = new Map(
  PROTOCOLS.flatMap(({ parsers }) => Object.entries(parsers)),
)

export function parserOf(format: ProtocolFormat): BodyParser {
  const parser = PARSERS.get(format)
  if (parser === undefined) throw new Error(`bug: no parser for ${format}`)
  return parser
}

const LOADERS: ReadonlyMap<string, () => Promise<void>> = new Map(
  PROTOCOLS.flatMap(({ parsers, load }) =>
    load === undefined ? [] : Object.keys(parsers).map((format) => [format, load] as const),
  ),
)

/**
 * @returns the loader to await before parsing a body of the format; undefined when there is nothing
 * to load
 */
export const loaderOf = (format: ProtocolFormat): (() => Promise<void>) | undefined =>
  LOADERS.get(format)

/** Creates the body for ingesting a record again: a text of its protocol, or a JSON object when the protocol has no text form. */
export function toReplayBody(
  text: string,
  protocol: string | null,
): { readonly format: BodyFormat; readonly bytes: Buffer } {
  const of = PROTOCOLS.find(({ name }) => name === protocol)
  return of?.toBody?.(text) ?? { format: 'ingest', bytes: Buffer.from(text) }
}

export const hasTexts = (protocol: string): boolean =>
  PROTOCOLS.some(({ name, toBody }) => name === protocol && toBody !== undefined)
