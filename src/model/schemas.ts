import { Type, type TString } from '@sinclair/typebox'

import { EVENT_TYPES, PRIORITIES, SEVERITIES } from './event.js'
import { ROLES } from './roles.js'

export const SeveritySchema = Type.Union(
  SEVERITIES.map((severity) => Type.Literal(severity)),
  { title: 'Severity' },
)
export const PrioritySchema = Type.Union(
  PRIORITIES.map((priority) => Type.Literal(priority)),
  { title: 'Priority' },
)
export const EventTypeSchema = Type.Union(
  EVENT_TYPES.map((type) => Type.Literal(type)),
  { title: 'EventType' },
)
export const RoleSchema = Type.Union(
  ROLES.map((role) => Type.Literal(role)),
  { title: 'Role' },
)

/** Schema of a name that a user gives. Without control characters it fits on one line of a list, a mail or a log. */
export const nameOf = (maxLength: number): TString =>
  Type.String({
    minLength: 1,
    maxLength,
    pattern: '^(?=[\\s\\S]*\\S)[^\\u0000-\\u001f\\u007f-\\u009f]*$',
    description: 'a name of more than blanks, without control characters',
  })

export const ReadonlyTexts = Type.Unsafe<readonly string[]>(Type.Array(Type.String()))
