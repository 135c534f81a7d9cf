import type { CanonicalEvent, RejectReason } from '../model/event.js'
import type { DeadBlock } from '../writer/dead-letter-encoder.js'

/** How a body is decoded: the wire format, or events that are decoded already. */
export type BodyFormat = 'ingest' | 'csv' | 'json' | 'txt' | 'events'

/** What happens to the messages of a source that may not simply be stored. */
export type SourceVerdict = 'drop' | Extract<RejectReason, 'unknown_source' | 'source_limit'>

/** One request's messages. */
export interface BodyTask {
  readonly format: BodyFormat
  readonly bytes: Uint8Array | null
  readonly events: readonly CanonicalEvent[] | null
  /** `ingest`, `upload`, `webhook`, `replay`: the protocol a dead letter is listed under */
  readonly protocol: string
  /** the source of every message; null = each names its own */
  readonly source: string | null
  /** sources the sender's key may write; null = any */
  readonly allowedSources: readonly string[] | null
  /** raw text of dead letters is kept (never for uploads) */
  readonly keepRaw: boolean
  readonly maxRows: number
  readonly verdicts: Readonly<Record<string, SourceVerdict>>
}

export interface BlockTask {
  readonly bodies: readonly BodyTask[]
  readonly environment: string
  readonly maxMessageBytes: number
  readonly modelVersion: string
}

export interface LineError {
  readonly line: number
  readonly code: RejectReason
  readonly message: string
}

/** What became of one body. received = accepted + rejected + dropped. */
export interface BodyResult {
  readonly received: number
  readonly accepted: number
  readonly rejected: number
  readonly dropped: number
  readonly errors: readonly LineError[]
  /** distinct sources of the accepted messages */
  readonly sources: readonly string[]
  /** refused as a whole: nothing of it is in the block */
  readonly refusal: BodyRefusal | null
}

export interface BodyRefusal {
  readonly code: 'source_not_allowed' | 'validation_error' | 'file_parse_error' | 'empty_file'
  readonly message: string
}

/**
 * A block of landing rows with the side arrays the sequencer works on; index = row. All of a large one lies in
 * a part of a buffer of a `RoomPool`: the bytes until they are in ClickHouse, and behind them the side arrays until
 * the block is sequenced.
 */
export interface RowBlock {
  readonly bytes: Uint8Array
  readonly rows: number
  /** where the data of the patched columns begins in `bytes` */
  readonly at: PatchOffsets
  /** two per row */
  readonly hashes: Int32Array
  readonly tsMs: Float64Array
  readonly counts: Int32Array
  readonly severities: Uint8Array
  /** index into `sources` */
  readonly sourceIndexes: Uint32Array
  /** 0 = not known to the shape cache: see `misses` */
  readonly templateNos: Int32Array
  readonly sources: readonly string[]
  readonly misses: MissBlock | null
}

export interface PatchOffsets {
  readonly id: number
  readonly isNew: number
  readonly priority: number
  readonly prioritySource: number
  readonly confidence: number
  readonly templateId: number
}

/** Shapes nobody has seen yet, each once, for the template owner. */
export interface MissBlock {
  /** two shape hashes per miss */
  readonly shapes: Int32Array
  /** the messages (or ready-made templates) one after another; `ends[i]` is where the i-th ends */
  readonly bytes: Uint8Array
  readonly ends: Uint32Array
  readonly sourceIndexes: Uint32Array
  /** 1 = the bytes are a ready-made template */
  readonly readyMade: Uint8Array
  /** rows that wait, and the miss each waits for */
  readonly rows: Uint32Array
  readonly missOfRow: Uint32Array
}

export interface BlockResult {
  readonly block: RowBlock | null
  readonly dead: DeadBlock | null
  readonly bodies: readonly BodyResult[]
}

/** A result with the memory that its block is in. */
export interface EncodedBlock extends BlockResult {
  /** Nobody reads more of the block from here on than its bytes. */
  readonly keepBytes: () => void
  /** Nobody reads anything of the block any more. To be called once, whether or not its bytes were kept. */
  readonly free: () => void
}
