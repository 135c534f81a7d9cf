/** A message that could not be stored. */
export interface DeadLetter {
  readonly id: number
  readonly receivedAtMs: number
  readonly protocol: string
  readonly source: string
  /** The ingest key that sent the message; '' without one (webhooks, uploads, refused by ClickHouse). */
  readonly keyId: string
  readonly reason: string
  readonly detail: string
  /** 1-based position in its body. */
  readonly line: number
  /** '' when the text is not stored. */
  readonly raw: string
}

/** The last row of a page. */
export interface DeadLetterPosition {
  readonly receivedAtMs: number
  readonly id: number
}

export interface DeadLetterQuery {
  /** Empty for any. */
  readonly reasons: readonly string[]
  /** Empty for any. */
  readonly sources: readonly string[]
  /** Null for the first page. */
  readonly after: DeadLetterPosition | null
  readonly limit: number
}
