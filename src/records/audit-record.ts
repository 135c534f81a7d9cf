/** One action in the audit trail. */
export interface AuditEntry {
  /** The user's id; empty without a login. */
  readonly actorId: string
  readonly action: string
  readonly target: string
  /** `ok`, or the code of the error. */
  readonly outcome: string
  readonly ip: string
  /** Small, and without secrets. */
  readonly detail: Readonly<Record<string, unknown>>
}

/** An entry with its place in the trail. */
export interface AuditRecord extends AuditEntry {
  /** Microseconds since 1970, or the last one plus one: the order of the trail. */
  readonly seq: number
  readonly id: string
  readonly atMs: number
}
