import { Type, type ArrayOptions, type TSchema } from '@sinclair/typebox'

const MAX_VALUES = 100

/** A query parameter that may be repeated or joined with commas. */
export const ListParameter = <T extends TSchema>(item: T, options: ArrayOptions = {}) =>
  Type.Optional(Type.Array(item, { maxItems: MAX_VALUES, ...options }))

/** The schema of an id that is a 64-bit hash: 16 lower-case hex digits. */
export const hexId = (what: string) =>
  Type.String({
    pattern: '^[0-9a-f]{16}$',
    maxLength: 16,
    description: `${what}: 16 hexadecimal digits`,
  })

/** A query parameter that `parseQueryTime` reads. */
export const QueryTime = (what: string) =>
  Type.Optional(
    Type.String({
      description: `ISO 8601, or relative such as \`now-1h\`; ${what}`,
      maxLength: 64,
    }),
  )

/** Query parameters of a list. */
export const PageParameters = {
  limit: Type.Integer({ minimum: 1, maximum: 200, default: 50 }),
  cursor: Type.Optional(Type.String({ maxLength: 2_048 })),
}

/** The cursor of the next page; null at the end of the list. */
export const NextCursor = Type.Union([Type.String(), Type.Null()])

/** Reply of a list. */
export const PageSchema = <T extends TSchema>(item: T) =>
  Type.Object({
    items: Type.Array(item),
    next_cursor: NextCursor,
    has_more: Type.Boolean(),
  })
