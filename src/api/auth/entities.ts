/**
 * What the services here need of an entity collection: reads come from memory, a write is durable
 * when it resolves, and the changes of one id follow one another.
 */
export interface Entities<T> {
  get(id: string): T | null
  list(): readonly T[]
  put(id: string, entity: T): Promise<void>
  /** `change` gets the entity as it is by then, null when there is none; the same value changes
   * nothing */
  update(id: string, change: (current: T | null) => T | null): Promise<T | null>
  /** @returns false when there was none */
  remove(id: string): Promise<boolean>
}
