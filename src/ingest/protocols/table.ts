import type { ProtocolFormat } from '../block.js'
import type { BodyParser, Protocol } from './protocol.js'
import { ndjson } from './ndjson.js'
import { forward } from './forward/forward.js'
import { gelfPorts } from './gelf-ports/gelf-ports.js'
import { lines } from './lines.js'
import { syslog } from './syslog/protocol.js'

/** Every protocol, with a port of its own or on the collector's. */
export const PROTOCOLS: readonly Protocol[] = [ndjson, syslog, forward, gelfPorts, lines]

const PARSERS: ReadonlyMap<string, BodyParser> = new Map(
  PROTOCOLS.flatMap(({ parsers }) => Object.entries(parsers)),
)

export function parserOf(format: ProtocolFormat): BodyParser {
  const parser = PARSERS.get(format)
  if (parser === undefined) throw new Error(`bug: no parser for ${format}`)
  return parser
}
