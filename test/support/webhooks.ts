import { readFileSync } from 'node:fs'

/** A JSON object that tests change. */
export type Payload = Record<string, unknown>

const folder = new URL('../../../test/fixtures/webhooks/', import.meta.url)

/** A fresh copy of the hand-written delivery of one `object_kind`. */
export function webhook(objectKind: string): Payload {
  return asPayload(JSON.parse(readFileSync(new URL(`${objectKind}.json`, folder), 'utf8')))
}

/** Sets or, with undefined, removes the field at a dotted path. */
export function withField(payload: Payload, path: string, value: unknown): Payload {
  const [head, ...rest] = path.split('.')
  if (head === undefined) throw new Error('bug: empty path')
  const copy = { ...payload }
  if (rest.length > 0) copy[head] = withField(asPayload(copy[head] ?? {}), rest.join('.'), value)
  else if (value === undefined) delete copy[head]
  else copy[head] = value
  return copy
}

export const withFields = (payload: Payload, fields: Readonly<Payload>): Payload =>
  Object.entries(fields).reduce((to, [path, value]) => withField(to, path, value), payload)

export const bodyOf = (payload: unknown): Uint8Array =>
  new TextEncoder().encode(JSON.stringify(payload))

/** @throws Error when `value` is no object */
export function asPayload(value: unknown): Payload {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Error('bug: not an object')
  }
  return { ...value }
}

/** The value at a dotted path; undefined when there is none. */
export function fieldAt(payload: Payload, path: string): unknown {
  let value: unknown = payload
  for (const key of path.split('.')) {
    if (typeof value !== 'object' || value === null) return undefined
    value = asPayload(value)[key]
  }
  return value
}
