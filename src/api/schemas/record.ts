import { Type, type TString } from '@sinclair/typebox'

/** A text with more in it than blanks. */
export function notBlank(maxLength: number): TString {
  return Type.String({
    minLength: 1,
    maxLength,
    pattern: '\\S',
    description: 'text of more than blanks',
  })
}

/** Parts that the records people keep (alerts, incidents, tasks) have in common. */
export const Title = notBlank(300)
export const Description = Type.String({ maxLength: 20_000 })
export const EventIds = Type.Array(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), {
  maxItems: 1_000,
})

/** An ISO 8601 time of a body: kept as text here, read by `parseQueryTime`. */
export const GivenTime = Type.String({
  minLength: 8,
  maxLength: 64,
  description: 'ISO 8601 with any offset, UTC without one',
})

export const toIso = (ms: number): string => new Date(ms).toISOString()
export const toIsoOrNull = (ms: number | null): string | null => (ms === null ? null : toIso(ms))

/** Largest body: a thousand ids and a long text, every character escaped. */
export const RECORD_BYTES = 256 * 1024
