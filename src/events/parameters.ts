import { allOf, type BuiltinField, type Query } from '../query/ast.js'
import { searchQuery } from './search.js'

/** The parameters that select events, beside a query. */
export interface EventParameters {
  readonly severity?: readonly string[]
  readonly priority?: readonly string[]
  readonly type?: readonly string[]
  readonly source?: readonly string[]
  readonly application?: string
  readonly environment?: readonly string[]
  readonly template_id?: readonly string[]
  readonly is_error_or_worse?: boolean
  readonly search?: string
}

/** Events must match all parameters and the query. */
export function toQuery(parameters: EventParameters, query: Query): Query {
  const { application = '', search = '' } = parameters
  return allOf([
    ...oneOf('severity', parameters.severity),
    ...oneOf('priority', parameters.priority),
    ...oneOf('type', parameters.type),
    ...oneOf('source', parameters.source),
    ...oneOf('application', application === '' ? [] : [application]),
    ...oneOf('environment', parameters.environment),
    ...oneOf('template', parameters.template_id),
    ...(parameters.is_error_or_worse === true ? [ERROR_OR_WORSE] : []),
    searchQuery(search),
    query,
  ])
}

const ERROR_OR_WORSE: Query = {
  kind: 'compare',
  field: { kind: 'builtin', name: 'severity' },
  operator: '>=',
  value: 'error',
}

function oneOf(name: BuiltinField, texts: readonly string[] = []): readonly Query[] {
  if (texts.length === 0) return []
  const tests = texts.map((text) => ({ kind: 'equal', text }) as const)
  return [{ kind: 'field', field: { kind: 'builtin', name }, tests }]
}
