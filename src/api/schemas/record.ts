import { Type, type TString } from '@sinclair/typebox'

/** A text that is not only blanks. */
export function notBlank(maxLength: number): TString {
  return Type.String({
    minLength: 1,
    maxLength,
    pattern: '\\S',
    description: 'text of more than blanks',
  })
}

export const Title = { ...notBlank(300), examples: ['Checkouts fail in eu-west'] }
export const Description = Type.String({
  maxLength: 20_000,
  examples: ['The payment service has timed out since 09:28.'],
})
export const EventIds = Type.Array(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), {
  maxItems: 1_000,
})

/** An ISO 8601 time in a body; `parseQueryTime` validates it. */
export const GivenTime = Type.String({
  minLength: 8,
  maxLength: 64,
  description: 'ISO 8601 with any offset, UTC without one',
  examples: ['2026-11-28T17:00:00+01:00'],
})

export const toIso = (ms: number): string => new Date(ms).toISOString()
export const toIsoOrNull = (ms: number | null): string | null => (ms === null ? null : toIso(ms))

/** Limit of a body: 1,000 ids and a long text with every character escaped. */
export const RECORD_BYTES = 256 * 1024
