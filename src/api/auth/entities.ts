/**
 * What the services here need of the entity store: reads come from memory, a write is durable
 * when it resolves, and writes to one id follow one another.
 */
export interface Entities<T> {
  readonly get: (id: string) => T | null
  readonly list: () => readonly T[]
  readonly put: (id: string, entity: T) => Promise<void>
  /** @returns null when there is no such entity; `change` is not called then */
  readonly update: (id: string, change: (current: T) => T) => Promise<T | null>
  /** @returns false when there was none */
  readonly remove: (id: string) => Promise<boolean>
}
