import { AppError } from '../model/errors.js'

/** The most records of a kind; further ones are refused with `overloaded`. */
export interface Bound<T> {
  readonly most: number
  /** The records in messages, for example `alert rules`. */
  readonly nouns: string
  /** The setting that raises the bound; absent for a fixed one. */
  readonly setting?: string
  /** Whose records count together, '' for records that are not bounded. Default: all of the kind. */
  readonly ownerOf?: (record: T) => string
}

/** Keeps a kind within its bound while many records are created at once. */
export class Places<T extends object> {
  readonly #bound: Bound<T>
  /** The records that are being written, by id. */
  readonly #creating = new Map<string, T>()

  constructor(bound: Bound<T>) {
    this.#bound = bound
  }

  /**
   * Takes a place for a new record until `free`, which is called in the turn in which the record is
   * among the stored ones or has failed.
   *
   * @throws AppError overloaded
   */
  take(id: string, record: T, stored: ReadonlyMap<string, { readonly value: T }>): void {
    const { most, nouns, setting } = this.#bound
    if (this.#count(record, stored) >= most)
      throw new AppError('overloaded', `there are ${most} ${nouns}, which is the most`, {
        details: { limit: most, ...(setting === undefined ? {} : { setting }) },
      })
    this.#creating.set(id, record)
  }

  free(id: string): void {
    this.#creating.delete(id)
  }

  #count(record: T, stored: ReadonlyMap<string, { readonly value: T }>): number {
    const { ownerOf } = this.#bound
    if (ownerOf === undefined) return stored.size + this.#creating.size
    const owner = ownerOf(record)
    if (owner === '') return 0
    let own = 0
    for (const { value } of stored.values()) if (ownerOf(value) === owner) own++
    for (const value of this.#creating.values()) if (ownerOf(value) === owner) own++
    return own
  }
}
