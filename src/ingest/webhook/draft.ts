import type { Severity } from '../../model/event.js'

/** What one kind says about an event; the rest is the same for all kinds. */
export interface Draft {
  readonly severity: Severity
  readonly message: string
  readonly summary: string
  /** the page of the object; '' when the payload has none */
  readonly url: string
  /** tags only this kind has; empty ones are left out */
  readonly tags: Readonly<Record<string, string>>
  /** times as received, the best first; none for what happens at its arrival */
  readonly moments: readonly unknown[]
  /** which object in which state, within the project and the kind */
  readonly identity: readonly unknown[]
}
