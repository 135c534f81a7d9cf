/** A message that could not be stored. */
export interface DeadLetter {
  readonly id: number
  readonly receivedAtMs: number
  readonly protocol: string
  readonly source: string
  readonly reason: string
  readonly detail: string
  /** 1-based position in the body it came in */
  readonly line: number
  /** '' when the text is not kept */
  readonly raw: string
}

/** The last row of a page. */
export interface DeadLetterPosition {
  readonly receivedAtMs: number
  readonly id: number
}

export interface DeadLetterQuery {
  /** empty = any */
  readonly reasons: readonly string[]
  /** empty = any */
  readonly sources: readonly string[]
  /** null = from the newest on */
  readonly after: DeadLetterPosition | null
  readonly limit: number
}
