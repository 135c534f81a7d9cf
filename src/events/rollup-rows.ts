/*
 * Counts by the rollups.
 *
 * - `series_*` has the occurrences of each second, minute and hour by source, and of each source those of each severity and of
 *   each priority.
 * - `template_stats` has the same for each template by hour, `host_stats` the occurrences of each host by hour, source and
 *   severity.
 *
 * They answer exactly what names sources, templates, and either severities or priorities, and counts by one of these or by host.
 * The ends of a range that the rollups have no step for (parts of a second, or of an hour) are counted from the events, to add or
 * to subtract.
 *
 * Events are dropped sooner than rollups. For the oldest days, of which some events may be dropped, the rollups would count more
 * than a list shows. These days are counted from the events that are left.
 */

import { statement, type Statement } from '../clickhouse/statement.js'
import { PRIORITIES, SEVERITIES } from '../model/event.js'
import { HOUR_MS, HOUR_S, SECOND_MS } from '../model/time.js'
import type { BuiltinField, Field } from '../query/ast.js'
import type { Condition } from './bind.js'
import type { EventFilter } from './filter.js'
import { toConditions } from './conditions.js'
import { fieldKey } from './field-expression.js'
import { eventRows, type RangeQuestion } from './occurrences.js'
import { END_MS, MAX_AHEAD_MS } from './range-rows.js'
import { toTemplateNumber } from './row-condition.js'
import { NO_HOURS, wholeHours } from './whole-hours.js'

type Params = Readonly<Record<string, unknown>>

const seriesSql = statement<Params, never>('series_rows')
const templatesSql = statement<Params, never>('template_rows')
const secondSql = statement<Params, never>('second_rest_rows')
const partsSql = statement<Params, never>('rest_rows')
const hostsSql = statement<Params, never>('host_rows')

const MINUTE_S = 60
const NO_MATCHES = { constantTexts: [], hosts: [] }

export type Counted = 'occurrences' | 'events'

interface RolledUp {
  readonly field: Field | null
  readonly counted: Counted
  /** The length of the buckets that the rows are counted in; 0 for a single bucket. */
  readonly stepS: number
}

interface RolledUpSince extends RolledUp {
  /** The first whole hour of which no event was dropped; occurrences from before are counted from the events. */
  readonly keptMs: number
}

/** The fields that each rollup counts by beside the source, finest steps first. None counts by severity and priority together. */
const ROLLUPS = {
  series: { stepS: 1, dimensions: ['severity', 'priority'] },
  templates: { stepS: HOUR_S, dimensions: ['severity', 'priority', 'template'] },
  hosts: { stepS: HOUR_S, dimensions: ['severity', 'host'] },
} as const satisfies Record<
  string,
  { readonly stepS: number; readonly dimensions: readonly BuiltinField[] }
>
type Rollup = keyof typeof ROLLUPS
const NAMES = ['series', 'templates', 'hosts'] as const satisfies readonly Rollup[]

/** The rollup that counts by these filters, by this field and in these steps; null for none. */
export function rollupOf(filter: EventFilter, { field, stepS, counted }: RolledUp): Rollup | null {
  const { terms, clauses } = filter
  if (terms.length > 0 || clauses.length > 0 || field?.kind === 'attribute') return null
  const dimensions = dimensionsOf(filter, field)
  if (counted === 'events') {
    const isKnown = stepS % HOUR_S === 0 && [...dimensions].every((one) => one === 'template')
    return isKnown ? 'templates' : null
  }
  if (dimensions.has('severity') && dimensions.has('priority')) return null
  const isCounting = (rollup: Rollup): boolean => {
    const { stepS: ownS, dimensions: own } = ROLLUPS[rollup]
    return stepS % ownS === 0 && [...dimensions].every((one) => own.some((name) => name === one))
  }
  return NAMES.find(isCounting) ?? null
}

function dimensionsOf(
  { severities, priorities, templateIds }: EventFilter,
  field: Field | null,
): ReadonlySet<string> {
  const dimensions = new Set<string>()
  if (severities !== null) dimensions.add('severity')
  if (priorities !== null) dimensions.add('priority')
  if (templateIds !== null) dimensions.add('template')
  if (field !== null && field.name !== 'source') dimensions.add(field.name)
  return dimensions
}

/**
 * The occurrences of a range as a statement for a FROM clause, with the columns of `occurrenceRows`.
 *
 * @returns null when no step of the rollup is within the range
 */
export function rollupRows(
  question: RangeQuestion,
  rollup: Rollup,
  by: RolledUpSince,
): Condition | null {
  if (by.counted === 'events') return rolledUpEvents(question, by)
  const { filter } = question
  const whole =
    rollup === 'series' ? seriesSteps(question, by.keptMs) : hourSteps(question, by.keptMs)
  if (whole === null) return null
  const { firstMs, lastMs, statement: ends } = whole
  const key = by.field === null ? NO_VALUE : fieldKey(by.field, 'field_')
  const rest = restOf(question, rollup === 'series' ? `toString(${key.sql})` : key.sql, {
    statement: ends,
    first: endOf(question.fromMs, firstMs),
    last: endOf(lastMs, question.toMs),
  })
  const parts = [
    rowsOf(rollup, filter, { ...by, firstS: firstMs / SECOND_MS, lastS: lastMs / SECOND_MS }),
    ...(rest === null ? [] : [rest]),
  ]
  return {
    sql: parts.map(({ sql }) => sql).join('\nUNION ALL\n'),
    params: Object.assign({}, ...parts.map(({ params }) => params)),
  }
}

interface Steps {
  readonly firstMs: number
  /** Exclusive. */
  readonly lastMs: number
  /** What counts the ends of the range beside these steps. */
  readonly statement: Statement<Params, never>
}

/** A range may end within a second. The second is counted whole, and the rest of it is subtracted. */
function seriesSteps({ fromMs, toMs }: RangeQuestion, keptMs: number): Steps | null {
  const areSecondsCut = keptMs <= fromMs
  const firstMs = Math.ceil(Math.max(fromMs, keptMs) / SECOND_MS) * SECOND_MS
  const whole = areSecondsCut ? Math.ceil(toMs / SECOND_MS) : Math.floor(toMs / SECOND_MS)
  const lastMs = Math.min(whole * SECOND_MS, END_MS)
  return firstMs < lastMs
    ? { firstMs, lastMs, statement: areSecondsCut ? secondSql : partsSql }
    : null
}

/**
 * A range may begin or end within an hour. The hour is counted whole when most of it, up to now, is
 * in the range, and the rest of it is subtracted.
 *
 * @returns null also when the events are read faster: when the ends are as long as the range
 */
function hourSteps({ fromMs, toMs }: RangeQuestion, keptMs: number): Steps | null {
  const [before, after] = [hourBefore(fromMs), hourAfter(Math.max(fromMs, keptMs))]
  const firstMs = before >= keptMs && fromMs - before < after - fromMs ? before : after
  const [earlier, later] = [hourBefore(toMs), hourAfter(toMs)]
  const beyondMs = Math.max(0, Math.min(later, Date.now()) - toMs)
  const isBeyond = later <= END_MS && beyondMs < toMs - earlier
  const lastMs = isBeyond ? later : earlier
  const endsMs = Math.abs(firstMs - fromMs) + (isBeyond ? beyondMs : toMs - earlier)
  return firstMs < lastMs && endsMs < toMs - fromMs
    ? { firstMs, lastMs, statement: partsSql }
    : null
}

const hourBefore = (ms: number): number => Math.floor(ms / HOUR_MS) * HOUR_MS
const hourAfter = (ms: number): number => Math.ceil(ms / HOUR_MS) * HOUR_MS

function rolledUpEvents(
  question: RangeQuestion,
  { field, keptMs }: RolledUpSince,
): Condition | null {
  const hours = wholeHours(question, keptMs)
  if (hours === NO_HOURS) return null
  const { sources, templateIds } = question.filter
  const events = 'toInt64(template_stats.events)'
  const whole = templatesSql.sql
    .replace('/*counted*/', events)
    .replace('/*begun*/', events)
    .replace('/*value*/', valueOf(field))
  const rest = eventRows(question, {
    found: NO_MATCHES,
    expressions: [field === null ? NO_VALUE : fieldKey(field, 'field_')],
    hours,
  })
  const ofTemplates = {
    sources: sources ?? [],
    template_ids: (templateIds ?? []).map(toTemplateNumber),
  }
  return { sql: `${whole}\nUNION ALL\n${rest.sql}`, params: { ...ofTemplates, ...rest.params } }
}

/** An end of a range, to add; or to subtract, where whole steps count more than the range. */
interface End extends Pick<RangeQuestion, 'fromMs' | 'toMs'> {
  readonly sign: 1 | -1
}

const endOf = (startMs: number, stopMs: number): End =>
  startMs <= stopMs
    ? { fromMs: startMs, toMs: stopMs, sign: 1 }
    : { fromMs: stopMs, toMs: startMs, sign: -1 }

interface Rest {
  readonly statement: Statement<Params, never>
  readonly first: End
  readonly last: End
}

/**
 * The counts of the two ends of a range that need the events.
 *
 * @param value SQL of the counted value
 * @returns null when both are empty
 */
function restOf(
  { filter, windowMs }: RangeQuestion,
  value: string,
  { statement: { sql }, first, last }: Rest,
): Condition | null {
  if (first.fromMs >= first.toMs && last.fromMs >= last.toMs) return null
  const conditions = toConditions(filter, { found: NO_MATCHES, endMs: last.toMs })
  const params = {
    first_from_ms: first.fromMs,
    first_to_ms: first.toMs,
    last_from_ms: last.fromMs,
    last_to_ms: last.toMs,
    first_sign: first.sign,
    last_sign: last.sign,
    window_ms: windowMs,
    arrived_ms: Math.max(0, first.fromMs - windowMs - MAX_AHEAD_MS),
  }
  return {
    sql: sql
      .replaceAll('/*conditions*/', () => conditions.map((one) => `AND ${one.sql}`).join('\n    '))
      .replaceAll('/*value*/', () => value),
    params: Object.assign(params, ...conditions.map((one) => one.params)),
  }
}

interface Whole extends RolledUp {
  readonly firstS: number
  readonly lastS: number
}

function rowsOf(rollup: Rollup, filter: EventFilter, whole: Whole): Condition {
  const { firstS, lastS, stepS, field } = whole
  const sources = filter.sources ?? []
  const hours = { hours_from: firstS, hours_until: lastS, sources }
  if (rollup === 'hosts')
    return { sql: hostsSql.sql, params: { ...hours, severities: filter.severities ?? [] } }
  const { counted, value } = expressionsOf(filter, field)
  // By a hash, as texts are in `event_counts`.
  const group = field?.name === 'source' ? ', sipHash128(series.source)' : ''
  const { sql } = rollup === 'series' ? seriesSql : templatesSql
  const ids = (filter.templateIds ?? []).map(toTemplateNumber)
  return {
    sql: sql
      .replace('/*counted*/', counted)
      .replace('/*begun*/', '0')
      .replace('/*value*/', value)
      .replace('/*group*/', group),
    params:
      rollup === 'series'
        ? { ...partsOf(firstS, lastS, stepS), sources }
        : { ...hours, template_ids: ids },
  }
}

const NO_VALUE: Condition = { sql: "''", params: {} }

/** Splits a range at whole minutes and hours, as far as the buckets allow it. */
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

/** SQL of the occurrences and of the value in a row of the rollups. All names come from closed sets. */
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
  return { counted: `toInt64(${sum})`, value: valueOf(field) }
}

/** SQL of the value that the rows of a rollup are counted by. */
const valueOf = (field: Field | null): string =>
  field?.name === 'source' ? 'toString(source)' : field?.name === 'template' ? 'template_id' : "''"
