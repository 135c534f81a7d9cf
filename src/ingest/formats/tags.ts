import { comparedName, isTagHolder } from './aliases.js'
import { parseJson } from './json-text.js'
import { isRecord, type JsonRecord, toWellFormed } from './json-value.js'

/** Approximate limit of the tags of one event as JSON; further tags are omitted and counted in `omitted_tags`. */
const MAX_TAG_CHARS = 65_536
const MAX_TAG_NAME = 256
/** Deeper values could overflow the stack of JSON.stringify. */
const MAX_DEPTH = 12
/** Limit of tag holders within each other; a deeper one is a value. */
const MAX_HOLDERS = 4

/** Collects the tags of one event within fixed limits. The first value of a name wins. */
export class TagCollector {
  readonly #tags: JsonRecord = {}
  #count = 0
  #chars = 0
  #omitted = 0

  /** Ignores nulls and empty texts. */
  add(name: string, value: unknown): void {
    if (value === undefined || value === null || value === '') return
    if (Object.hasOwn(this.#tags, name)) return
    const chars = name.length + weigh(value, MAX_TAG_CHARS - this.#chars, 0)
    if (this.#chars + chars > MAX_TAG_CHARS || name.length > MAX_TAG_NAME) {
      this.#omitted += 1
      return
    }
    this.#chars += chars
    this.#count += 1
    setOwn(this.#tags, name, value)
  }

  /** Adds every member, and those of tag holders under their own names. */
  addAll(record: JsonRecord, depth = 0): void {
    for (const name of Object.keys(record)) {
      const value = record[name]
      const isHolder = isRecord(value) && depth < MAX_HOLDERS && isTagHolder(comparedName(name))
      if (isHolder) this.addAll(value, depth + 1)
      else this.addField(name, value)
    }
  }

  /** Adds one value; a list of `key:value` words (Datadog, Logstash) is several tags. */
  addField(name: string, value: unknown): void {
    if (typeof value === 'string' && (name === 'ddtags' || name === 'tags')) {
      this.#addWords(name, value)
      return
    }
    const isJson = typeof value === 'string' && value.startsWith('{')
    const parsed = isJson && isTagHolder(comparedName(name)) ? parseRecord(value) : null
    if (parsed === null) this.add(name, value)
    else this.addAll(parsed)
  }

  /** @returns null when there are none */
  finish(): JsonRecord | null {
    if (this.#omitted > 0) this.#tags['omitted_tags'] = this.#omitted
    return this.#count === 0 && this.#omitted === 0 ? null : this.#tags
  }

  #addWords(name: string, text: string): void {
    if (!text.includes(':')) {
      this.add(name, text)
      return
    }
    // The text is split without an array of its words, because a text of commas may be long.
    for (let at = 0; at < text.length;) {
      const comma = text.indexOf(',', at)
      const end = comma === -1 ? text.length : comma
      this.#addWord(text.slice(at, end).trim())
      at = end + 1
    }
  }

  #addWord(word: string): void {
    if (word === '') return
    const colon = word.indexOf(':')
    const key = word.slice(0, Math.max(colon, 0)).trim()
    if (key === '') this.add(word, true)
    else this.add(key, word.slice(colon + 1).trim())
  }
}

/** Whether `tags` can be stored unchanged. */
export const areSmallTags = (tags: JsonRecord): boolean =>
  weigh(tags, MAX_TAG_CHARS, 0) <= MAX_TAG_CHARS

function parseRecord(text: string): JsonRecord | null {
  const value = parseJson(text)
  return isRecord(value) ? (toWellFormed(value) as JsonRecord) : null // an object stays an object
}

/** Sets an own member, even one named `__proto__`. */
function setOwn(record: JsonRecord, name: string, value: unknown): void {
  if (name !== '__proto__') {
    record[name] = value
    return
  }
  Object.defineProperty(record, name, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  })
}

/** Estimates the length as JSON; stops soon after `limit` and at MAX_DEPTH. */
function weigh(value: unknown, limit: number, depth: number): number {
  if (typeof value === 'string') return value.length + 2
  if (typeof value !== 'object' || value === null) return 8
  if (depth >= MAX_DEPTH) return Number.POSITIVE_INFINITY
  let sum = 2
  if (Array.isArray(value)) {
    for (const item of value) {
      sum += 1 + weigh(item, limit - sum, depth + 1)
      if (sum > limit) return sum
    }
    return sum
  }
  for (const [key, item] of Object.entries(value)) {
    sum += key.length + 4 + weigh(item, limit - sum, depth + 1)
    if (sum > limit) return sum
  }
  return sum
}
