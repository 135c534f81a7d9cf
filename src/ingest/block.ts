import type { ContentCoding } from '../http/decompress.js'
import type { CanonicalEvent, RejectReason } from '../model/event.js'
import type { DeadBlock } from '../writer/dead-letter-encoder.js'
import type { ReplyText } from './reply-text.js'
import type { Verdicts } from './verdicts.js'

/** The most bytes of a body of `/ingest`, before and after decompression. */
export const INGEST_BYTES = 16 * 1024 * 1024

/** A format that a protocol's parser reads: `otlp/logs`. */
export type ProtocolFormat = `${string}/${string}`

/** The wire format of a body: JSON or text lines of `/ingest`, a file, that of a protocol, or `events` when it is decoded already. */
export type BodyFormat = 'ingest' | 'text' | 'csv' | 'json' | 'txt' | 'events' | ProtocolFormat

export const isOfProtocol = (format: BodyFormat): format is ProtocolFormat => format.includes('/')

/** One request's messages. */
export interface BodyTask {
  readonly format: BodyFormat
  readonly bytes: Uint8Array | null
  /** The compression of `bytes`. */
  readonly coding: ContentCoding
  readonly events: readonly CanonicalEvent[] | null
  /** The protocol in lists of dead letters: its name, `upload`, `webhook` or `replay`. */
  readonly protocol: string
  /** The source of every message; null = each message names its own. */
  readonly source: string | null
  /** The ingest key of the sender, which its dead letters name; '' without one. */
  readonly keyId: string
  /** The source of messages that name none. */
  readonly defaultSource: string
  /** The source that the request names for records without one; '' for none. */
  readonly requestSource: string
  /** The parameters of the request for the protocol's parser, as a query string. */
  readonly params: string
  /** Whether the body was stored before; it is then read only for its reply. */
  readonly isRepeat: boolean
  /** Keys of records of the body that were stored before. */
  readonly repeats: ReadonlySet<string>
  /** Sources that the sender's key may write; null = any. */
  readonly allowedSources: readonly string[] | null
  /** Whether records of other sources are rejected one by one instead of the whole body. */
  readonly deniesRecords: boolean
  /** Whether dead letters keep the raw text (never for uploads). */
  readonly keepRaw: boolean
  readonly maxRows: number
  /** The zone of times without one; null = that of the task. */
  readonly timeZone: string | null
  readonly verdicts: Verdicts
}

export interface BlockTask {
  readonly bodies: readonly BodyTask[]
  readonly timeZone: string
  readonly environment: string
  readonly maxMessageBytes: number
  readonly modelVersion: string
}

export interface LineError {
  readonly line: number
  readonly code: RejectReason
  readonly message: string
}

export interface TimeSpan {
  readonly fromMs: number
  /** Inclusive. */
  readonly toMs: number
}

/** The outcome of one body: received = accepted + rejected + dropped. */
export interface BodyResult {
  readonly received: number
  readonly accepted: number
  readonly rejected: number
  readonly dropped: number
  /** Size of the body, decompressed. */
  readonly bytes: number
  /** The time that a thread took for the body. */
  readonly ms: number
  readonly errors: readonly LineError[]
  /** The distinct sources of the accepted messages. */
  readonly sources: readonly string[]
  /** The ids of accepted records, by which their sender may repeat them. */
  readonly ids: readonly string[]
  /** The times of the first and last event of an uploaded file. Null when it has no events, and for other bodies. */
  readonly span: TimeSpan | null
  /** Why the whole body was refused; nothing of it is in the block then. */
  readonly refusal: BodyRefusal | null
  /** The reply of a protocol whose replies name each record; else null. */
  readonly reply: ReplyText | null
}

/** The reasons for refusing a whole body. */
export const REFUSALS = [
  'source_not_allowed',
  'validation_error',
  'file_parse_error',
  'empty_file',
  'body_too_large',
  'bad_request',
] as const

export type RefusalCode = (typeof REFUSALS)[number]

export interface BodyRefusal {
  readonly code: RefusalCode
  readonly message: string
}

/**
 * A block of landing rows with the side arrays that the sequencer reads, by row. A large block is in the pool's shared
 * memory: its bytes until they are in ClickHouse, and after them the side arrays until the block is sequenced.
 */
export interface RowBlock {
  readonly bytes: Uint8Array
  readonly rows: number
  /** Offsets in `bytes` of the columns that the sequencer fills in. */
  readonly at: PatchOffsets
  /** Two per row. */
  readonly hashes: Int32Array
  readonly tsMs: Float64Array
  readonly counts: Int32Array
  readonly severities: Uint8Array
  /** Index into `sources`. */
  readonly sourceIndexes: Uint32Array
  /** 0 = the signature is unknown, see `misses`. */
  readonly templateNos: Int32Array
  readonly sources: readonly string[]
  /** The number of messages by source and severity: one for each of SEVERITIES for each of `sources`. Never in shared memory. */
  readonly occurrences: Uint32Array
  readonly misses: MissBlock | null
  /** The number of attribute values beyond the bounds, in messages that were parsed. */
  readonly attributesLeftOut: number
}

export interface PatchOffsets {
  readonly id: number
  readonly keptDays: number
  readonly isNew: number
  readonly priority: number
  readonly prioritySource: number
  readonly confidence: number
  readonly templateId: number
}

/** Signatures that are not known yet, each once, for the miner. */
export interface MissBlock {
  /** Two numbers per miss. */
  readonly signatures: Int32Array
  /** The messages (or ready-made templates) one after another; the i-th ends at `ends[i]`. */
  readonly bytes: Uint8Array
  readonly ends: Uint32Array
  readonly sourceIndexes: Uint32Array
  /** 1 = the bytes are a ready-made template. */
  readonly readyMade: Uint8Array
  /** The rows without a template, and the index of the miss of each. */
  readonly rows: Uint32Array
  readonly missOfRow: Uint32Array
}

export interface BlockResult {
  readonly block: RowBlock | null
  readonly dead: DeadBlock | null
  /** The results of the first bodies of the task. The others were not encoded, because these took too long. */
  readonly bodies: readonly BodyResult[]
  /** The time of arrival in the rows and dead letters. */
  readonly receivedAtMs: number
}

/** A result with its block's memory. */
export interface EncodedBlock extends BlockResult {
  /** Keeps the bytes of the block until `release`; the side arrays become unreadable. */
  readonly retain: () => void
  /** Releases the block; called once, after or without `retain`. */
  readonly release: () => void
}
