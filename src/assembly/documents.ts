import { Type, type Static, type TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'

import { PRIORITIES } from '../model/event.js'
import { SOURCE_TYPES } from '../store/sources.js'

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
})

/** Gives the parser of a collection; its error names what does not fit, never a value. */
export const parserOf =
  <S extends TSchema>(schema: S) =>
  (doc: unknown): Static<S> => {
    if (Value.Check(schema, doc)) return doc
    const first = Value.Errors(schema, doc).First()
    throw new Error(`stored record does not fit: ${first?.path ?? ''} ${first?.message ?? ''}`)
  }
