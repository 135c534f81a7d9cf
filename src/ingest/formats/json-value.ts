export type JsonRecord = Record<string, unknown>

/** Inherits nothing, so that a member may have any name, `__proto__` too. */
export const emptyRecord = (): JsonRecord => Object.create(null) as JsonRecord

export const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Converts the typed values and key-value lists of OpenTelemetry JSON to plain ones:
 * `[{"key":"a","value":{"stringValue":"b"}}]` becomes `{"a":"b"}`.
 *
 * @returns the value itself when it is not such a list
 */
export function plainAttributes(value: unknown, depth = 0): unknown {
  if (!Array.isArray(value) || value.length === 0 || !value.every(isKeyValue)) return value
  const plain = emptyRecord()
  for (const { key, value: typed } of value) plain[key] = plainValue(typed, depth + 1)
  return plain
}

const TYPED = ['stringValue', 'intValue', 'doubleValue', 'boolValue', 'bytesValue'] as const

/** Unwraps an OpenTelemetry AnyValue. Other values, and those nested too deeply, are returned unchanged. */
export function plainValue(value: unknown, depth = 0): unknown {
  if (!isRecord(value) || depth > 8) return value
  for (const name of TYPED) {
    if (Object.hasOwn(value, name)) return value[name]
  }
  const list = value['kvlistValue']
  if (isRecord(list)) return plainAttributes(list['values'], depth)
  const array = value['arrayValue']
  if (isRecord(array) && Array.isArray(array['values'])) {
    return array['values'].map((item) => plainValue(item, depth + 1))
  }
  return value
}

interface KeyValue {
  readonly key: string
  readonly value: unknown
}

const isKeyValue = (item: unknown): item is KeyValue =>
  isRecord(item) && typeof item['key'] === 'string' && Object.hasOwn(item, 'value')

const MAX_DEPTH = 64

/**
 * Replaces lone surrogates, which UTF-8 cannot express, by U+FFFD in names and values.
 *
 * @returns the value itself when it contains none
 */
export const toWellFormed = (value: unknown): unknown =>
  isWellFormed(value, 0) ? value : mend(value, 0)

/** With the `u` flag a pair is one character, so only lone surrogates match. */
const LONE = /\p{Surrogate}/u

function isWellFormed(value: unknown, depth: number): boolean {
  if (typeof value === 'string') return !LONE.test(value)
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return true
  if (Array.isArray(value)) return value.every((item) => isWellFormed(item, depth + 1))
  return Object.entries(value).every(
    ([key, item]) => !LONE.test(key) && isWellFormed(item, depth + 1),
  )
}

function mend(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return mendText(value)
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return value
  if (Array.isArray(value)) return value.map((item) => mend(item, depth + 1))
  const copy = emptyRecord()
  for (const [key, item] of Object.entries(value)) copy[mendText(key)] = mend(item, depth + 1)
  return copy
}

const mendText = (text: string): string => Buffer.from(text, 'utf8').toString('utf8')
