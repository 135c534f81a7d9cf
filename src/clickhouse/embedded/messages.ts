/** What the supervisor tells the engine's process: a connection of its own was opened or closed. */
export interface ToEngine {
  readonly kind: 'opened' | 'closed'
  /** The client's end, which tells the connection from those of other processes. */
  readonly localPort: number
}

/** What the engine's process tells: where it listens, and whether an opened connection is one with it. */
export type FromEngine =
  | { readonly kind: 'listening'; readonly port: number }
  | { readonly kind: 'opened'; readonly localPort: number; readonly isConfirmed: boolean }
