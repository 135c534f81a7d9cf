/*
 * Counts by the rollups of `series_*`, which have the occurrences of each second, minute and hour by source, and of each source
 * those of each severity and of each priority. They answer exactly what names sources and either severities or priorities. The
 * ends of a range that are within a second are counted from its events, of which there are few.
 *
 * Events are dropped sooner than rollups, so a range is left to the events when some of its own may be gone.
 */

import { statement } from '../clickhouse/statement.js'
import { PRIORITIES, SEVERITIES } from '../model/event.js'
import { HOUR_S } from '../model/time.js'
import type { Field } from '../query/ast.js'
import type { Condition } from './bind.js'
import type { EventFilter } from './filter.js'
import { fieldText, type FieldNames } from './field-expression.js'
import { occurrenceRows, renamed, type RangeQuestion } from './occurrences.js'

type Params = Readonly<Record<string, unknown>>

const rowsSql = statement<Params, never>('series_rows')

const MINUTE_S = 60
const END_S = 0xffff_ffff
const NO_MATCHES = { constantTexts: [], hosts: [] }

/** Whether the rollups count by these filters and by this field. */
export function isRolledUp(filter: EventFilter, field: Field | null): boolean {
  const { severities, priorities, templateIds, terms, clauses } = filter
  if (templateIds !== null || terms.length > 0 || clauses.length > 0) return false
  if (severities !== null && priorities !== null) return false
  if (field === null) return true
  if (field.kind === 'attribute') return false
  if (field.name === 'severity') return priorities === null
  if (field.name === 'priority') return severities === null
  return field.name === 'source'
}

/**
 * The occurrences of a range as a statement for a FROM clause, with the columns of `occurrenceRows`.
 *
 * @param stepS of the buckets that the rows are counted in; 0 for one
 */
export function rollupRows(question: RangeQuestion, { field, stepS, names }: RolledUp): Condition {
  const { filter, fromMs, toMs } = question
  const firstS = Math.ceil(fromMs / 1000)
  const lastS = Math.min(Math.floor(toMs / 1000), END_S)
  const within = (ms: { readonly fromMs: number; readonly toMs: number }, prefix: string) =>
    ms.fromMs >= ms.toMs
      ? []
      : [
          renamed(
            occurrenceRows({ ...question, ...ms }, NO_MATCHES, [
              field === null ? NO_VALUE : fieldText(field, 'field_', names),
            ]),
            prefix,
          ),
        ]
  if (firstS >= lastS) return unionOf(within({ fromMs, toMs }, ''))
  const { counted, value } = expressionsOf(filter, field)
  const series: Condition = {
    sql: rowsSql.sql.replaceAll('/*counted*/', counted).replaceAll('/*value*/', value),
    params: { ...partsOf(firstS, lastS, stepS), sources: filter.sources ?? [] },
  }
  return unionOf([
    series,
    ...within({ fromMs, toMs: firstS * 1000 }, 'first_'),
    ...within({ fromMs: lastS * 1000, toMs }, 'last_'),
  ])
}

interface RolledUp {
  readonly field: Field | null
  readonly stepS: number
  readonly names: FieldNames
}

const NO_VALUE: Condition = { sql: "''", params: {} }

const unionOf = (parts: readonly Condition[]): Condition => ({
  sql: parts.map(({ sql }) => sql).join('\nUNION ALL\n'),
  params: Object.assign({}, ...parts.map(({ params }) => params)),
})

/** Splits a range where whole minutes and hours begin and end, as far as buckets consist of them. */
function partsOf(firstS: number, lastS: number, stepS: number): Params {
  const [minutesFrom, minutesUntil] = wholeSteps(firstS, lastS, { ofS: MINUTE_S, stepS })
  const [hoursFrom, hoursUntil] = wholeSteps(minutesFrom, minutesUntil, { ofS: HOUR_S, stepS })
  return {
    seconds_from: firstS,
    minutes_from: minutesFrom,
    hours_from: hoursFrom,
    hours_until: hoursUntil,
    minutes_until: minutesUntil,
    seconds_until: lastS,
  }
}

function wholeSteps(
  from: number,
  until: number,
  { ofS, stepS }: { readonly ofS: number; readonly stepS: number },
): readonly [number, number] {
  const first = Math.ceil(from / ofS) * ofS
  const last = Math.floor(until / ofS) * ofS
  return stepS % ofS !== 0 || first >= last ? [until, until] : [first, last]
}

/** SQL of the counted occurrences and of the value of a row of the rollups; all names are of closed sets. */
function expressionsOf(
  { severities, priorities }: EventFilter,
  field: Field | null,
): { readonly counted: string; readonly value: string } {
  const isOf = (name: string): boolean => field?.kind === 'builtin' && field.name === name
  const counters: readonly string[] =
    priorities !== null || isOf('priority')
      ? PRIORITIES.filter((name) => priorities?.includes(name) ?? true)
      : SEVERITIES.filter((name) => severities?.includes(name) ?? true)
  if (isOf('severity') || isOf('priority')) {
    const pairs = counters.map((name) => `('${name}', ${name.toLowerCase()})`).join(', ')
    const pair = `arrayJoin([${pairs}])`
    return { counted: `toInt64(${pair}.2)`, value: `${pair}.1` }
  }
  const sum = counters.map((name) => name.toLowerCase()).join(' + ')
  return { counted: `toInt64(${sum})`, value: isOf('source') ? 'toString(source)' : "''" }
}
