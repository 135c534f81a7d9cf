/** Splits a body that is taken while it arrives into bodies of whole records. */
export interface BodySplitter {
  /** Bytes of the whole records that were not taken yet, and of all that is in memory. */
  readonly wholeBytes: number
  readonly heldBytes: number
  /** @throws AppError for what can't be split */
  push(chunk: Uint8Array): void
  /** Takes the whole records. */
  take(): Buffer
  /** Takes what is left at the end of the body. */
  end(): Buffer
}
