import type { HttpRoute } from '../../http/routes.js'
import type { DecodeContext, EventSink } from '../../model/event.js'
import type { LineError, ProtocolFormat } from '../block.js'
import type { RecordTaker } from '../record-rows.js'
import type { ReplyText } from '../reply-text.js'
import type { IngestServices } from './ingest-route.js'

/** Writes a reply that names the outcome of each record, given the rejected ones; null when the list of errors is enough. */
export type ReplyWriter = (errors: readonly LineError[]) => ReplyText | null

/**
 * Decodes a decompressed body in a worker thread: from bytes to canonical events, without I/O.
 *
 * @param taker takes records without objects; a parser need not use it
 * @throws AppError `bad_request` when none of it can be decoded, `file_parse_error` for more
 * records than `context.maxRows`
 */
export type BodyParser = (
  bytes: Buffer,
  context: DecodeContext,
  sink: EventSink,
  taker?: RecordTaker | null,
) => ReplyWriter | void

/** A wire protocol. One file or folder has all of it; `table.ts` lists it. */
export interface Protocol {
  /** The protocol's name in metrics and dead letters. */
  readonly name: string
  /** The parsers of its bodies, by format: `name/part`. */
  readonly parsers: Readonly<Record<ProtocolFormat, BodyParser>>
  /** Loads what the parsers need. It is awaited before each body, so it must be quick once loaded. */
  readonly load?: () => Promise<void>
  /** Converts a text record back to a body; absent when records are not texts. */
  readonly toBody?: (text: string) => { readonly format: ProtocolFormat; readonly bytes: Buffer }
  /** The routes on the collector's port; absent for a protocol with a port of its own. */
  readonly routes?: (services: IngestServices) => readonly HttpRoute[]
}
