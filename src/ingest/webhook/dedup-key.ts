import { createHash } from 'node:crypto'
import { isFields } from './payload.js'

/** Deeper levels count as equal: a body of 25 MiB may nest millions of arrays. */
const MAX_DEPTH = 32

/**
 * `sha256:<hex>` over the given values; equal values give equal keys whatever the order of the keys
 * in their objects. A missing value is the same as null.
 */
export function dedupKey(identity: readonly unknown[]): string {
  const hash = createHash('sha256')
  hash.update(JSON.stringify(sorted(identity, 0)))
  return `sha256:${hash.digest('hex')}`
}

function sorted(value: unknown, depth: number): unknown {
  if (value === undefined) return null
  if (typeof value !== 'object' || value === null) return value
  if (depth === MAX_DEPTH) return null
  if (Array.isArray(value)) return value.map((item: unknown) => sorted(item, depth + 1))
  if (!isFields(value)) return null
  // pairs, not an object: a key such as `1` would move to the front of one
  const keys = Object.keys(value).sort()
  return { of: keys.map((key) => [key, sorted(value[key], depth + 1)]) }
}
