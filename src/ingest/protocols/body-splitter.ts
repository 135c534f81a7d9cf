/** Splits a body that is stored while it arrives into bodies of whole records. */
export interface BodySplitter {
  /** The bytes of whole records that were not taken yet, and of everything in memory. */
  readonly wholeBytes: number
  readonly heldBytes: number
  /** @throws AppError for bytes that cannot be split */
  push(chunk: Uint8Array): void
  /** Returns the whole records and removes them. */
  take(): Buffer
  /** Returns the rest at the end of the body. */
  end(): Buffer
}
