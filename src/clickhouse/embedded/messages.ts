/** A message of the supervisor to the engine's process: a connection of its own was opened or closed. */
export interface ToEngine {
  readonly kind: 'opened' | 'closed'
  /** The port of the client's end, which distinguishes the connection from those of other processes. */
  readonly localPort: number
}

/** A message of the engine's process: where it listens, or whether an opened connection is one with it. */
export type FromEngine =
  | { readonly kind: 'listening'; readonly port: number }
  | { readonly kind: 'opened'; readonly localPort: number; readonly isConfirmed: boolean }
