/* Derives from a rule the counts that its evaluation needs. */

import {
  NUMBER_FUNCTIONS,
  isNumberFunction,
  type NumberFunction,
} from '../events/number-functions.js'
import { DAY_MS, HOUR_MS } from '../model/time.js'
import { allOf, EVERYTHING, type Query } from '../query/ast.js'
import { toField } from '../query/fields.js'
import type { QueryFault } from '../query/fault.js'
import { findExcess, findLoneRegex } from '../query/limits.js'
import { parseQuery } from '../query/parser.js'
import { queryMatcherOf } from './query-matcher.js'
import type { RuleFields } from './rule-fields.js'
import { toMs, type Kind } from './rule-kind.js'

/** A count that a rule needs. */
export type Counter =
  | {
      readonly kind: 'events'
      readonly query: Query
      readonly of: 'occurrences' | 'events'
      /** Counts only templates that had no event for this long before the last hour. */
      readonly unseenMs?: number
    }
  /** The occurrences of an equally long window in the past, read at each evaluation. */
  | {
      readonly kind: 'past'
      readonly query: Query
      readonly agoMs: number
      readonly windowMs: number
    }
  | {
      readonly kind: 'value'
      readonly query: Query
      readonly of: NumberFunction
      readonly attribute: string
      readonly windowMs: number
    }
  | { readonly kind: 'dead letters' }
  | {
      readonly kind: 'findings'
      readonly query: Query
      readonly leastGravity: number
      /** Empty for all. */
      readonly kinds: readonly string[]
    }

/** A fault in a field of a rule. */
export interface RuleFault extends Partial<Omit<QueryFault, 'message'>> {
  readonly path: string
  readonly message: string
}

export function countersOf(kind: Kind, query: Query): readonly Counter[] | RuleFault {
  switch (kind.type) {
    case 'threshold':
      return [counting(query, kind.of)]
    case 'absence':
      return [counting(query)]
    case 'change':
      return changeCounters(kind, query)
    case 'ratio':
      return ratioCounters(kind.part, query)
    case 'value': {
      const metric = readMetric(kind.metric)
      if ('path' in metric) return metric
      return [{ kind: 'value', query, ...metric, windowMs: toMs(kind.window) }]
    }
    case 'new_template':
      return newTemplateCounters(kind, query)
    case 'anomaly':
      return findingCounters(kind, query)
    case 'dead_letters':
      return [{ kind: 'dead letters' }, counting(EVERYTHING)]
  }
}

const counting = (query: Query, of: 'occurrences' | 'events' = 'occurrences') => ({
  kind: 'events' as const,
  query,
  of,
})

function changeCounters(
  { against = 'before', window }: Extract<Kind, { type: 'change' }>,
  query: Query,
): readonly Counter[] {
  if (against === 'before') return [counting(query)]
  const agoMs = against === 'day' ? DAY_MS : 7 * DAY_MS
  return [counting(query), { kind: 'past', query, agoMs, windowMs: toMs(window) }]
}

function ratioCounters(line: string, query: Query): readonly Counter[] | RuleFault {
  const part = readLine('kind.part', line)
  return 'path' in part ? part : [counting(allOf([query, part.query])), counting(query)]
}

function newTemplateCounters(
  { min_severity: least = 'DEBUG', also_reappeared_after: after }: NewTemplateKind,
  query: Query,
): readonly Counter[] | RuleFault {
  const age = after === undefined ? ' new:1h' : ''
  const found = readLine('kind.min_severity', `severity>=${least.toLowerCase()}${age}`)
  if ('path' in found) return found
  const counter = counting(allOf([query, found.query]))
  if (after === undefined) return [counter]
  const unseenMs = toMs(after)
  return unseenMs < HOUR_MS || unseenMs > 30 * DAY_MS
    ? { path: 'kind.also_reappeared_after', message: 'is from 1h to 30d' }
    : [{ ...counter, unseenMs }]
}
type NewTemplateKind = Extract<Kind, { type: 'new_template' }>

function findingCounters(
  { min_score: leastGravity = 10, kinds = [] }: Extract<Kind, { type: 'anomaly' }>,
  query: Query,
): readonly Counter[] | RuleFault {
  const matcher = queryMatcherOf(query)
  const isOfColumns = matcher !== null && matcher.texts.length === 0
  if (isOfColumns && [...matcher.columns].every((column) => OF_FINDINGS.has(column)))
    return [{ kind: 'findings', query, leastGravity, kinds }]
  return { path: 'q', message: 'an anomaly has a source, a severity and a template alone' }
}

const OF_FINDINGS: ReadonlySet<string> = new Set(['source', 'severity', 'template'])

const METRIC = /^([a-z0-9]+)\(([^()]+)\)$/i

function readMetric(
  text: string,
): { readonly of: NumberFunction; readonly attribute: string } | RuleFault {
  const [, name = '', argument = ''] = METRIC.exec(text) ?? []
  const of = name.toLowerCase()
  const field = toField(argument.trim())
  if (isNumberFunction(of) && field.kind === 'attribute') return { of, attribute: field.name }
  const message = `must be one of ${NUMBER_FUNCTIONS.join(', ')} of an attribute, as in p95(duration_ms)`
  return { path: 'kind.metric', message }
}

export function readLine(path: string, line: string): { readonly query: Query } | RuleFault {
  const parsed = parseQuery(line)
  if (parsed.fault !== null) return { path, ...parsed.fault }
  const loneRegex = findLoneRegex(parsed.query)
  if (loneRegex !== null)
    return {
      path,
      ...(parsed.faultOf(loneRegex.clause, loneRegex.message) ?? { message: loneRegex.message }),
    }
  if (names(parsed.query, 'count'))
    return { path, message: 'counts occurrences already: `count` cannot be asked' }
  return { query: parsed.query }
}

/**
 * Finds where the queries of a rule exceed the limits. It runs when a rule is saved, not when one
 * is evaluated, because earlier versions stored rules without this check.
 */
export function excessOf({ q = '', kind }: Pick<RuleFields, 'q' | 'kind'>): RuleFault | null {
  const own = excessIn('q', q, EVERYTHING)
  if (own !== null || kind.type !== 'ratio') return own
  // The part is evaluated together with `q`.
  return excessIn('kind.part', kind.part, parseQuery(q).query ?? EVERYTHING)
}

function excessIn(path: string, line: string, beside: Query): RuleFault | null {
  const parsed = parseQuery(line)
  if (parsed.fault !== null) return { path, ...parsed.fault }
  const excess = findExcess(allOf([beside, parsed.query]))
  if (excess === null) return null
  const { clause, message } = excess
  return { path, ...(parsed.faultOf(clause, message) ?? { message }) }
}

const names = (query: Query, name: string): boolean =>
  'nodes' in query
    ? query.nodes.some((node) => names(node, name))
    : query.kind === 'not'
      ? names(query.node, name)
      : 'field' in query && query.field.kind === 'builtin' && query.field.name === name
