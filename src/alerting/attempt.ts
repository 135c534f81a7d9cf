/** How an attempt to send a notice went. */
export interface Attempt {
  readonly outcome: 'sent' | 'refused' | 'failed'
  /** Of HTTP; null without a reply. */
  readonly status: number | null
  readonly latencyMs: number
  /** Holds no secret; null when it was sent. */
  readonly error: string | null
  /** What the receiver calls its message; null where it has no name. */
  readonly receipt: string | null
}
