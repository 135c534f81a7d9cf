import type { HttpRoute } from '../../http/routes.js'
import type { DecodeContext, EventSink } from '../../model/event.js'
import type { LineError, ProtocolFormat } from '../block.js'
import type { RecordTaker } from '../record-rows.js'
import type { ReplyText } from '../reply-text.js'
import type { IngestServices } from './ingest-route.js'

/** Writes a reply that names the outcome of each record, from the rejected ones; null where the errors say all. */
export type ReplyWriter = (errors: readonly LineError[]) => ReplyText | null

/**
 * Decodes a decompressed body in a worker thread: from bytes to canonical events, without I/O.
 *
 * @param taker takes records without objects; a parser need not use it
 * @throws AppError `bad_request` when nobody can read any of it, `file_parse_error` for more records than `context.maxRows`
 */
export type BodyParser = (
  bytes: Buffer,
  context: DecodeContext,
  sink: EventSink,
  taker?: RecordTaker | null,
) => ReplyWriter | void

/** A wire protocol. One file or folder has all of it; `table.ts` lists it. */
export interface Protocol {
  /** As metrics and dead letters name it. */
  readonly name: string
  /** What reads its bodies, by format: `name/part`. */
  readonly parsers: Readonly<Record<ProtocolFormat, BodyParser>>
  /** Loads what its parsers need; awaited before each body, so it has to be quick once that is there. */
  readonly load?: () => Promise<void>
  /** Makes a body of a record that is a text; absent where records are none. */
  readonly toBody?: (text: string) => { readonly format: ProtocolFormat; readonly bytes: Buffer }
  /** Its requests on the collector's port; absent for a protocol with a port of its own. */
  readonly routes?: (services: IngestServices) => readonly HttpRoute[]
}
