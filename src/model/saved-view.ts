import { Type, type Static } from '@sinclair/typebox'

import { nameOf } from './schemas.js'

const SAVED_VIEW_SCREENS = ['explore', 'live', 'templates'] as const

/** The use of a view: it is opened, or drawn as a panel of a dashboard. */
const SAVED_VIEW_KINDS = ['view', 'series', 'top', 'number', 'table'] as const

const literals = <T extends string>(values: readonly T[]) =>
  Type.Union(values.map((value) => Type.Literal(value)))

export const SavedViewFields = Type.Object(
  {
    name: nameOf(120),
    screen: literals(SAVED_VIEW_SCREENS),
    kind: literals(SAVED_VIEW_KINDS),
    params: Type.String({
      maxLength: 12_000,
      description: 'the query string of the screen, without `?`',
      examples: ['q=severity:error&from=now-1h'],
    }),
    dashboard: Type.Optional(
      Type.String({
        maxLength: 120,
        description: 'the dashboard that a panel stands on: a view of a kind other than `view`',
        examples: ['Checkout'],
      }),
    ),
    is_for_all: Type.Boolean({ description: 'whether all users see it' }),
    is_default: Type.Boolean({
      description:
        'whether its screen opens with it; the default of a user goes before that for all',
    }),
  },
  { additionalProperties: false },
)
export type SavedViewFields = Readonly<Static<typeof SavedViewFields>>
