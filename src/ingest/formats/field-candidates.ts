import {
  type Alias,
  aliasesOf,
  comparedName,
  containerRank,
  FIELDS,
  isTagHolder,
} from './aliases.js'
import { emptyRecord, isRecord, type JsonRecord, plainAttributes } from './json-value.js'

const MAX_DEPTH = 4
/** Limit of the names that are cached for a body. */
const MAX_KNOWN_NAMES = 4096
const MAX_KNOWN_NAME_CHARS = 64

/** The meaning of a member name at one path of a body's records. */
interface KnownName {
  /** The fields that a value under this name may become. */
  readonly offers: readonly Offer[]
  readonly isAttributes: boolean
  /** Whether its members become tags under their own names. */
  readonly isHolder: boolean
  readonly inner: NamePlace
}

interface Offer {
  readonly alias: Alias
  /** Candidates with lower scores are tried first: by container, then by position among the names. */
  readonly score: number
}

/** The cached names in the records of one body, most of which have the same names. */
export class NamePlace {
  readonly #known = new Map<string, KnownName>()
  readonly #full: string
  readonly #local: string
  readonly #container: number
  readonly #count: { names: number }

  constructor(full = '', local = '', container = 0, count = { names: 0 }) {
    this.#full = full
    this.#local = local
    this.#container = container
    this.#count = count
  }

  get(key: string): KnownName {
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const name = this.#learn(comparedName(key))
    if (key.length <= MAX_KNOWN_NAME_CHARS && this.#count.names < MAX_KNOWN_NAMES) {
      this.#known.set(key, name)
      this.#count.names += 1
    }
    return name
  }

  #learn(name: string): KnownName {
    const full = this.#full + name
    const local = this.#local + name
    const offers: Offer[] = []
    for (const alias of aliasesOf(full)) offers.push({ alias, score: alias.rank })
    if (this.#container > 0) {
      const base = this.#container * 1000
      for (const alias of aliasesOf(local)) offers.push({ alias, score: base + alias.rank })
    }
    const container = containerRank(local) || containerRank(full)
    return {
      offers,
      isAttributes: name === 'attributes',
      isHolder: isTagHolder(full) || isTagHolder(local),
      inner:
        container > 0
          ? new NamePlace(full, '', container, this.#count)
          : new NamePlace(full, local, this.#container, this.#count),
    }
  }
}

/** A member of a record that has a known name for a field. */
export interface FieldCandidate {
  readonly alias: Alias
  readonly score: number
  readonly owner: JsonRecord
  readonly key: string
  readonly value: unknown
}

/** A record may name one field in many spellings; at most this many of them are kept. */
const MAX_FINDINGS = 16
const NOTHING: readonly FieldCandidate[] = []

/** The members of one record that may become fields, and those that are taken. */
export class FieldCandidates {
  readonly record: JsonRecord
  readonly names: NamePlace
  readonly #found: (FieldCandidate[] | undefined)[] = []
  readonly #taken: FieldCandidate[] = []
  /** Names at the top in compared form, computed on demand. */
  #members: ReadonlySet<string> | null = null

  constructor(record: JsonRecord, names: NamePlace) {
    this.record = record
    this.names = names
    for (let i = 0; i < FIELDS.length; i += 1) this.#found.push(undefined)
    walk(record, names, 0, this.#found)
  }

  /** In the order in which they are tried. */
  of(field: Alias['field']): readonly FieldCandidate[] {
    return this.#found[FIELDS.indexOf(field)] ?? NOTHING
  }

  /** @param name in compared form, at the top of the record */
  hasMember(name: string): boolean {
    this.#members ??= new Set(Object.keys(this.record).map(comparedName))
    return this.#members.has(name)
  }

  /** A taken member does not become a tag. */
  take(candidate: FieldCandidate): void {
    this.#taken.push(candidate)
  }

  /**
   * Takes the first candidate that `read` can use.
   *
   * @param read returns null for a value that it cannot use
   */
  first<T>(field: Alias['field'], read: (candidate: FieldCandidate) => T | null): T | null {
    for (const candidate of this.of(field)) {
      const value = read(candidate)
      if (value === null) continue
      this.#taken.push(candidate)
      return value
    }
    return null
  }

  isTaken(owner: JsonRecord, key: string): boolean {
    for (const candidate of this.#taken) {
      if (candidate.owner === owner && candidate.key === key) return true
    }
    return false
  }

  /**
   * Returns an object without the members that became fields.
   *
   * @returns the same object when none did, null when all did
   */
  rest(value: JsonRecord, depth = 0): JsonRecord | null {
    if (depth > MAX_DEPTH || !this.#holdsTaken(value, depth)) return value
    const rest = emptyRecord()
    for (const key of Object.keys(value)) {
      if (this.isTaken(value, key)) continue
      const item = value[key]
      const left = isRecord(item) ? this.rest(item, depth + 1) : item
      if (left !== null) rest[key] = left
    }
    return Object.keys(rest).length > 0 ? rest : null
  }

  #holdsTaken(value: JsonRecord, depth: number): boolean {
    if (this.#taken.some(({ owner }) => owner === value)) return true
    if (depth >= MAX_DEPTH) return false
    return Object.values(value).some((item) => isRecord(item) && this.#holdsTaken(item, depth + 1))
  }
}

function walk(
  owner: JsonRecord,
  place: NamePlace,
  depth: number,
  found: (FieldCandidate[] | undefined)[],
): void {
  for (const key of Object.keys(owner)) {
    const value = owner[key]
    if (value === null || value === undefined || value === '') continue
    const known = place.get(key)
    for (const { alias, score } of known.offers) {
      insert(found, { alias, score, owner, key, value })
    }
    if (typeof value !== 'object') continue
    const inner = known.isAttributes ? plainAttributes(value) : value
    if (!isRecord(inner) || depth >= MAX_DEPTH) continue
    if (inner !== value) owner[key] = inner
    walk(inner, known.inner, depth + 1, found)
  }
}

/** Inserts a candidate of a field in order. */
function insert(found: (FieldCandidate[] | undefined)[], candidate: FieldCandidate): void {
  const list = found[candidate.alias.fieldIndex]
  if (list === undefined) {
    found[candidate.alias.fieldIndex] = [candidate]
    return
  }
  if (list.length >= MAX_FINDINGS) return
  let at = list.length
  for (; at > 0; at -= 1) {
    const before = list[at - 1]
    if (before === undefined || before.score <= candidate.score) break
  }
  list.splice(at, 0, candidate)
}
