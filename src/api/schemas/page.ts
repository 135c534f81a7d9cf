import { Type, type TSchema } from '@sinclair/typebox'

/** Query parameters of a list. */
export const PageParameters = {
  limit: Type.Integer({ minimum: 1, maximum: 200, default: 50 }),
  cursor: Type.Optional(
    Type.String({ maxLength: 2_048, description: '`next_cursor` of the page before' }),
  ),
}

/** Reply of a list. */
export const PageSchema = <T extends TSchema>(item: T) =>
  Type.Object({
    items: Type.Array(item),
    next_cursor: Type.Union([Type.String(), Type.Null()]),
    has_more: Type.Boolean(),
  })
