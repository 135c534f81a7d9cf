/**
 * The tags of an event are stored as attributes: every value by its path, the names that lead to it
 * joined by dots. The paths are one text and the values, as JSON, another, each with a delimiter
 * between; the events of a source have few different texts of paths. Tags that are not searchable,
 * or that the attributes do not restore byte for byte, are stored as JSON too.
 *
 * - The items of a list are values of the list's path, and null is no value.
 * - A text that is a number has its shortest form as a further value (`5e2`: `500`), so that equal numbers have an equal text.
 */
import { DELIMITER } from './stored-message.js'

export interface StoredTags {
  readonly names: string
  readonly values: string
  /** The JSON; '' when it is restored from names and values. */
  readonly text: string
  /** The number of values beyond the limits. */
  readonly leftOut: number
}

const MAX_ATTRIBUTES = 256
const MAX_NAME_CHARS = 128
const MAX_VALUE_BYTES = 1024

/** The characters of a name that JSON escapes. */
// oxlint-disable-next-line no-control-regex -- control characters are meant
const ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** @returns the shortest form of a number; null for other texts and for greater ones, which are not exact: they are ids */
export function shortestNumber(text: string): string | null {
  if (!NUMBER.test(text) || Math.abs(Number(text)) >= 2 ** 53) return null
  return String(Number(text))
}

/** @param text the JSON of the tags */
export function toStoredTags(tags: object, text: string): StoredTags {
  const list = new AttributeList()
  list.addMembers(tags, '')
  return list.finish(text)
}

class AttributeList {
  readonly #names: string[] = []
  #count = 0
  readonly #values: string[] = []
  /** Whether the JSON can be restored from names and values. */
  #isWhole = true
  #leftOut = 0

  addMembers(tags: object, above: string): void {
    for (const [name, value] of Object.entries(tags)) this.#add(above + name, value)
  }

  finish(text: string): StoredTags {
    return {
      names: this.#names.join(DELIMITER),
      values: this.#values.join(DELIMITER),
      text: this.#isWhole ? '' : text,
      leftOut: this.#leftOut,
    }
  }

  #add(path: string, value: unknown): void {
    if (typeof value !== 'object') {
      this.#addValue(path, value)
      return
    }
    this.#isWhole = false
    if (value === null) return
    if (Array.isArray(value)) for (const item of value) this.#add(path, item)
    else this.addMembers(value, `${path}.`)
  }

  #addValue(path: string, value: unknown): void {
    const json = JSON.stringify(value)
    if (!this.#isWithin(path, json)) {
      this.#isWhole = false
      this.#leftOut += 1
      return
    }
    this.#count += 1
    this.#names.push(path)
    this.#values.push(json)
    if (ESCAPED.test(path)) this.#isWhole = false
    const number = typeof value === 'string' ? shortestNumber(value) : null
    if (number === null || number === value) return
    this.#isWhole = false
    this.#names.push(path)
    this.#values.push(number)
  }

  #isWithin(path: string, json: string): boolean {
    return (
      this.#count < MAX_ATTRIBUTES &&
      path !== '' &&
      path.length <= MAX_NAME_CHARS &&
      !path.includes(DELIMITER) &&
      (json.length <= MAX_VALUE_BYTES / 3 || Buffer.byteLength(json) <= MAX_VALUE_BYTES)
    )
  }
}

/** Returns the JSON of stored tags. */
export function wholeTags({ names, values, text }: Omit<StoredTags, 'leftOut'>): string {
  if (text !== '' || names === '') return text
  const jsons = values.split(DELIMITER)
  const members = names.split(DELIMITER).map((name, i) => `"${name}":${jsons[i] ?? ''}`)
  return `{${members.join(',')}}`
}
