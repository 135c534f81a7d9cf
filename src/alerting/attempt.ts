/** How an attempt to send a notice went. */
export interface Attempt {
  readonly outcome: 'sent' | 'refused' | 'failed'
  /** Of HTTP; null without a reply. */
  readonly status: number | null
  readonly latencyMs: number
  /** Holds no secret; null when it was sent. */
  readonly error: string | null
  /** The receiver's id for the message; null when the receiver gave none. */
  readonly receipt: string | null
}
