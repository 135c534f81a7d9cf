/** How an attempt to send a notice went. */
export interface Attempt {
  readonly outcome: 'sent' | 'refused' | 'failed'
  /** The HTTP status; null without a reply. */
  readonly status: number | null
  readonly latencyMs: number
  /** What went wrong, without secrets; null when the notice was sent. */
  readonly error: string | null
  /** The receiver's id for the message; null when the receiver gave none. */
  readonly receipt: string | null
}
