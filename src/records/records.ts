/** What the services of alerts, incidents and tasks need of an entity collection. */
export interface Records<T> {
  readonly size: number
  get(id: string): T | null
  list(): readonly T[]
  /**
   * Changes of one id follow one another; resolves when the change is on disk.
   *
   * @param change gets the record as it is by then, null when there is none; null deletes it, the
   *   same value leaves it as it is, what it throws is thrown on
   */
  update(id: string, change: (current: T | null) => T | null): Promise<T | null>
  /** @returns whether there was one */
  remove(id: string): Promise<boolean>
  /** @returns how many there were */
  clear(): Promise<number>
  /** Called after each change, here or by another instance. */
  onChange(listener: (change: RecordChange<T>) => void): unknown
}

interface RecordChange<T> {
  readonly id: string
  /** null when it was deleted */
  readonly value: T | null
}

/** How many removals are under way at once; the store writes them together. */
const REMOVALS_AT_ONCE = 500

/** @returns how many there were */
export async function removeRecords<T>(
  records: Pick<Records<T>, 'remove'>,
  ids: readonly string[],
): Promise<number> {
  let removed = 0
  for (let from = 0; from < ids.length; from += REMOVALS_AT_ONCE) {
    const some = ids.slice(from, from + REMOVALS_AT_ONCE)
    const existed = await Promise.all(some.map((id) => records.remove(id)))
    removed += existed.filter(Boolean).length
  }
  return removed
}
