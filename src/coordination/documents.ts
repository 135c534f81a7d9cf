import { Type, type Static, type TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'

import { ROLES } from '../model/roles.js'
import { PRIORITIES } from '../model/event.js'
import { SOURCE_TYPES } from '../records/sources.js'

/** The shapes of stored entities; a row of another shape is reported and left out. */
const literals = <T extends string>(values: readonly T[]) =>
  Type.Union(values.map((value) => Type.Literal(value)))

export const SourceDoc = Type.Object({
  name: Type.String(),
  type: literals(SOURCE_TYPES),
  connector: Type.String(),
  enabled: Type.Boolean(),
  applicationId: Type.Union([Type.String(), Type.Null()]),
  createdAtMs: Type.Number(),
})

export const ApplicationDoc = Type.Object({
  id: Type.String(),
  name: Type.String(),
  environment: Type.String(),
  hosts: Type.Array(Type.String()),
  createdAtMs: Type.Number(),
})

/** A person's priority for a template. */
export const TemplatePriorityDoc = Type.Object({
  templateId: Type.String({ pattern: '^[0-9a-f]{16}$' }),
  source: Type.String(),
  priority: literals(PRIORITIES),
  /** when it was said, ms since 1970 */
  atMs: Type.Optional(Type.Number()),
})
export type TemplatePriority = Readonly<Static<typeof TemplatePriorityDoc>>

/** Gives the parser of a collection; its error names what does not fit, never a value. */
export const parserOf =
  <S extends TSchema>(schema: S) =>
  (doc: unknown): Static<S> => {
    if (Value.Check(schema, doc)) return doc
    const first = Value.Errors(schema, doc).First()
    throw new Error(`stored record does not fit: ${first?.path ?? ''} ${first?.message ?? ''}`)
  }

const NumberOrNull = Type.Union([Type.Number(), Type.Null()])

export const UserDoc = Type.Object({
  id: Type.String(),
  email: Type.String(),
  role: literals(ROLES),
  isActive: Type.Boolean(),
  passwordHash: Type.String(),
  tokenEpoch: Type.Number(),
  createdAtMs: Type.Number(),
  lastLoginAtMs: NumberOrNull,
})

/** A login: its refresh tokens, of which one is current. */
export const FamilyDoc = Type.Object({
  id: Type.String(),
  userId: Type.String(),
  jti: Type.String(),
  expiresAtMs: Type.Number(),
})

export const IngestKeyDoc = Type.Object({
  id: Type.String(),
  name: Type.String(),
  prefix: Type.String(),
  hash: Type.String(),
  sources: Type.Union([Type.Array(Type.String()), Type.Null()]),
  autoRegister: Type.Boolean(),
  createdAtMs: Type.Number(),
  lastUsedAtMs: NumberOrNull,
})

/** What the priority model has learned. */
export const PriorityModelDoc = Type.Object({
  format: Type.Literal(1),
  learned: Type.Number(),
  corrections: Type.Array(
    Type.Object({
      words: Type.Array(Type.String()),
      severity: Type.Number(),
      priority: Type.Number(),
    }),
  ),
})

/** An instance that works on this database, and which of the changes of all instances it knows. */
export const InstanceDoc = Type.Object({
  /** others need not wait for it: it looks at what was changed before it writes again */
  isAway: Type.Boolean(),
  known: Type.Array(Type.String()),
  atMs: Type.Number(),
})
export type InstanceRecord = Readonly<Static<typeof InstanceDoc>>

const ReadonlyTexts = Type.Unsafe<readonly string[]>(Type.Array(Type.String()))

/** A change that all instances make together. */
export const SharedChangeDoc = Type.Object({
  change: Type.Union([
    Type.Object({ kind: Type.Literal('delete-sources'), sources: ReadonlyTexts }),
    Type.Object({ kind: Type.Literal('clear-all') }),
    Type.Object({
      kind: Type.Literal('correct-event'),
      event: Type.Number(),
      priority: literals(PRIORITIES),
    }),
  ]),
  /** the instance that was asked for it */
  by: Type.String(),
  atMs: Type.Number(),
  /** when it had taken effect, null before */
  overMs: NumberOrNull,
  /** what the one who asked is told */
  result: Type.Unknown(),
})
export type SharedChangeRecord = Readonly<Static<typeof SharedChangeDoc>>
