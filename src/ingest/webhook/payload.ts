import { AppError } from '../../model/errors.js'
import { toWellFormed } from '../formats/json-value.js'
import type { Severity } from '../../model/event.js'

/** A parsed JSON object whose fields are not checked yet. */
export type Fields = Readonly<Record<string, unknown>>

const NONE: Fields = Object.freeze({})
/** The most bytes of an id, ref, state, name or URL: every event of a push repeats them. */
const WORD_BYTES = 2048

const decoder = new TextDecoder()
const encoder = new TextEncoder()

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Parses a body; lone surrogates become U+FFFD. @throws AppError invalid_payload when the body is no JSON object */
export function parseBody(body: Uint8Array): Fields {
  let value: unknown
  try {
    value = toWellFormed(JSON.parse(decoder.decode(body)))
  } catch {
    throw invalidPayload('body', 'the body is not valid JSON')
  }
  if (!isFields(value)) throw invalidPayload('body', 'the body is not a JSON object')
  return value
}

export const invalidPayload = (field: string, message: string): AppError =>
  new AppError('invalid_payload', message, { details: { field } })

export const missingField = (field: string): AppError =>
  invalidPayload(field, `required field ${field} is missing or has the wrong type`)

/** Returns the object under `key`, an empty one when there is none. */
export function fieldsAt(from: Fields, key: string): Fields {
  const value = from[key]
  return isFields(value) ? value : NONE
}

/** Returns the text under `key` verbatim, '' when it is no string or blank. */
export function textAt(from: Fields, key: string): string {
  const value = from[key]
  return typeof value === 'string' && value.trim() !== '' ? value : ''
}

/** Returns the trimmed text under `key`, at most 2 KiB of it, '' when it is no string. */
export function wordAt(from: Fields, key: string): string {
  const value = from[key]
  return typeof value === 'string' ? cutBytes(value.trim(), WORD_BYTES) : ''
}

/** Returns the number or short text under `key` as text, '' when it is neither. */
export function idAt(from: Fields, key: string): string {
  const value = from[key]
  return typeof value === 'number' && Number.isFinite(value) ? String(value) : wordAt(from, key)
}

/** Truncates a text to at most `maxBytes` of UTF-8 without splitting a character. */
export function cutBytes(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text
  return text.slice(0, encoder.encodeInto(text, new Uint8Array(maxBytes)).read)
}

/** The parts of an event that depend on the kind of the payload. */
export interface ScmEvent {
  readonly severity: Severity
  readonly message: string
  readonly summary: string
  /** Page of the object; '' when the payload has none. */
  readonly url: string
  /** The tags that only this kind has; empty ones are omitted. */
  readonly tags: Readonly<Record<string, string>>
  /** The times as received, the best first; without any the event has the time of arrival. */
  readonly times: readonly unknown[]
  /** The values that identify the object and its state within the project and kind. */
  readonly identity: readonly unknown[]
}
