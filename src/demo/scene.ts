import type { Random } from './random.js'

/** A record as a logger would write it. */
export interface DemoRecord {
  readonly timestamp: string
  readonly source: string
  readonly severity: string
  readonly host: string
  readonly message: string
  readonly trace_id?: string
  readonly tags?: Readonly<Record<string, unknown>>
}

/** What the writers of messages get for one moment of the hour. */
export interface Scene {
  readonly random: Random
  /** Milliseconds since the beginning of the hour. */
  readonly atMs: number
  readonly write: (record: Omit<DemoRecord, 'timestamp'> & { readonly afterMs?: number }) => void
}
