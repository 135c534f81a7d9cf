import { PRIORITIES, SEVERITIES } from '../../src/model/event.js'
import { type Counts, widenSteps } from '../data/tally.js'
import { type Api, field, listField, numberField, textField } from '../lib/api.js'
import type { Engine } from '../lib/engine.js'
import type { Check } from '../lib/report.js'

export interface Findings {
  readonly checks: readonly Check[]
  readonly skipped: readonly string[]
}

/** The occurrences of all days in the calendar; null without the route. */
export async function visibleOccurrences(api: Api): Promise<number | null> {
  const days = await api.json('/api/logs/meta/calendar?days=730')
  if (!Array.isArray(days)) return null
  return days.reduce((sum: number, day: unknown) => sum + numberField(day, 'value'), 0)
}

const GRANULARITIES = [
  { granularity: 'day', window: '30d', stepS: 86_400 },
  { granularity: 'hour', window: '24h', stepS: 3600 },
  { granularity: 'minute', window: '15m', stepS: 60 },
] as const

/** Compares every count of the API with that of the sent events. The service must contain no others. */
export async function checkApi(api: Api, counts: Counts): Promise<Findings> {
  const checks: Check[] = []
  const skipped: string[] = []
  const note = (name: string, check: Check | null): void => {
    if (check === null) skipped.push(`${name}: the service has no such route`)
    else checks.push(check)
  }
  note('calendar', await checkCalendar(api, counts))
  for (const { granularity, window, stepS } of GRANULARITIES) {
    // These steps are finer than those of the counts.
    if (stepS < counts.stepS) continue
    const path = `/api/logs/meta/timeseries?window=${window}&granularity=${granularity}&limit=50`
    const name = `time series by ${granularity}`
    const buckets = await readBuckets(api, path)
    note(name, buckets === null ? null : compareSteps(name, widenSteps(counts, stepS), buckets))
  }
  note('severity breakdown', await checkBreakdown(api, counts))
  note('top sources', await checkSources(api, counts))
  note('templates', await checkTemplates(api, counts))
  note('kpis', await checkKpis(api, counts))
  return { checks, skipped }
}

const equal = (name: string, got: number, want: number): Check => ({
  name,
  ok: got === want,
  detail: got === want ? `${got}` : `${got} instead of ${want}`,
})

async function checkCalendar(api: Api, counts: Counts): Promise<Check | null> {
  const days = await api.json('/api/logs/meta/calendar?days=730')
  if (!Array.isArray(days)) return null
  const wanted = widenSteps(counts, 86_400)
  const total = (counters: readonly number[]): number => counters.reduce((a, b) => a + b, 0)
  const wrong = [...wanted].filter(([startS, counters]) => {
    const name = new Date(startS * 1000).toISOString().slice(0, 10)
    const day = days.find((one: unknown) => field(one, 'day') === name)
    return numberField(day, 'value') !== total(counters)
  })
  const sum = days.reduce((n: number, day: unknown) => n + numberField(day, 'value'), 0)
  const check = equal('calendar', sum, counts.events)
  return wrong.length === 0
    ? check
    : { ...check, ok: false, detail: `${wrong.length} days are wrong` }
}

async function readBuckets(api: Api, path: string): Promise<Map<number, number[]> | null> {
  const found = new Map<number, number[]>()
  for (let offset = 0; ;) {
    const page = await api.json(`${path}&offset=${offset}`)
    if (page === null) return null
    const buckets = listField(page, 'buckets')
    for (const bucket of buckets) {
      const startS = Date.parse(textField(bucket, 't')) / 1000
      found.set(
        startS,
        SEVERITIES.map((severity) => numberField(bucket, severity)),
      )
    }
    offset += buckets.length
    if (field(page, 'has_more') !== true || buckets.length === 0) return found
  }
}

function compareSteps(
  name: string,
  wanted: ReadonlyMap<number, readonly number[]>,
  found: ReadonlyMap<number, readonly number[]>,
): Check {
  const wrong = [...wanted].filter(([at, counters]) => found.get(at)?.join() !== counters.join())
  const sum = [...found.values()].flat().reduce((a, b) => a + b, 0)
  const ok = wrong.length === 0 && found.size === wanted.size
  const detail = `${sum} in ${found.size} steps`
  return {
    name,
    ok,
    detail: ok ? detail : `${detail}; ${wrong.length} of ${wanted.size} are wrong`,
  }
}

async function checkBreakdown(api: Api, counts: Counts): Promise<Check | null> {
  const reply = await api.json('/api/analytics/severity-breakdown?window=30d')
  if (reply === null) return null
  const items = listField(reply, 'items')
  const got = SEVERITIES.map((severity) =>
    numberField(
      items.find((item) => field(item, 'severity') === severity),
      'count',
    ),
  )
  const ok = got.join() === counts.severities.join()
  const detail = got.join(' + ')
  return {
    name: 'severity breakdown',
    ok,
    detail: ok ? detail : `${detail} instead of ${counts.severities.join(' + ')}`,
  }
}

async function checkSources(api: Api, counts: Counts): Promise<Check | null> {
  const reply = await api.json('/api/analytics/top-sources?window=30d&limit=50')
  if (reply === null) return null
  const items = listField(reply, 'items')
  const wrong = items.filter((item) => {
    const known = counts.sources.get(textField(item, 'source'))
    return (
      known?.count !== numberField(item, 'count') ||
      known.errors !== numberField(item, 'error_count')
    )
  })
  const sum = items.reduce((n: number, item) => n + numberField(item, 'count'), 0)
  const complete = counts.sources.size > 50 || sum === counts.events
  const detail = `${sum} in ${items.length} sources`
  if (wrong.length === 0 && complete) return { name: 'top sources', ok: true, detail }
  return { name: 'top sources', ok: false, detail: `${detail}; ${wrong.length} are wrong` }
}

async function checkTemplates(api: Api, counts: Counts): Promise<Check | null> {
  const items = await api.json('/api/logs/meta/templates?limit=200')
  if (!Array.isArray(items)) return null
  const sum = items.reduce(
    (n: number, item: unknown) => n + numberField(item, 'occurrence_count'),
    0,
  )
  if (items.length < 200) return equal(`templates (${items.length})`, sum, counts.events)
  const detail = `${sum} in the first 200; the rest is not listed`
  return { name: 'templates', ok: sum <= counts.events, detail }
}

async function checkKpis(api: Api, counts: Counts): Promise<Check | null> {
  const kpis = await api.json('/api/kpis')
  if (kpis === null) return null
  return equal('kpis total_occurrences', numberField(kpis, 'total_occurrences'), counts.events)
}

const SEVERITY_COLUMNS = SEVERITIES.map((severity) => severity.toLowerCase())
const PRIORITY_COLUMNS = PRIORITIES.map((priority) => priority.toLowerCase())
const FORMAT = 'FORMAT JSONCompactEachRow'

/** Compares the tables themselves. @param distinct expected number of events, null when it depends on the order of arrival */
export async function checkTables(
  engine: Engine,
  counts: Counts,
  distinct: number | null,
): Promise<readonly Check[]> {
  const one = async (sql: string): Promise<number> =>
    Number((await engine.rows(`${sql} ${FORMAT}`))[0]?.[0] ?? 0)
  const checks: Check[] = []
  for (const [table, columns] of await readRollups(engine)) {
    const bySeverity = await one(`SELECT ${sumOf(SEVERITY_COLUMNS)} FROM ${table}`)
    checks.push(equal(`table ${table}`, bySeverity, counts.events))
    if (!PRIORITY_COLUMNS.every((column) => columns.has(column))) continue
    const byPriority = await one(`SELECT ${sumOf(PRIORITY_COLUMNS)} FROM ${table}`)
    checks.push(equal(`table ${table} by priority`, byPriority, counts.events))
  }
  const firsts = await one('SELECT sum(n) FROM events')
  const repeats = await one('SELECT sum(n) FROM event_occurrences')
  checks.push(equal('tables events + event_occurrences', firsts + repeats, counts.events))
  checks.push(equal('table dead_letters', await one('SELECT count() FROM dead_letters'), 0))
  const events = await one('SELECT count() FROM events')
  const ids = await one('SELECT uniqExact(id) FROM events')
  checks.push(equal('distinct event ids', ids, events))
  if (distinct !== null) checks.push(equal('distinct events', events, distinct))
  if (counts.stepS === 1) checks.push(await checkSeconds(engine, counts))
  return checks
}

const sumOf = (columns: readonly string[]): string => `toInt64(sum(${columns.join(' + ')}))`

/** The tables that count occurrences per severity, with their columns. */
async function readRollups(engine: Engine): Promise<Map<string, Set<string>>> {
  const sql = `SELECT c.table, c.name FROM system.columns AS c
    JOIN system.tables AS t ON t.database = c.database AND t.name = c.table
    WHERE c.database = 'logs' AND t.engine LIKE '%MergeTree' ORDER BY c.table ${FORMAT}`
  const columnsOf = new Map<string, Set<string>>()
  for (const [table, column] of await engine.rows(sql)) {
    const columns = columnsOf.get(String(table)) ?? new Set()
    columnsOf.set(String(table), columns.add(String(column)))
  }
  return new Map(
    [...columnsOf].filter(([, columns]) => SEVERITY_COLUMNS.every((column) => columns.has(column))),
  )
}

async function checkSeconds(engine: Engine, counts: Counts): Promise<Check> {
  const sums = SEVERITY_COLUMNS.map((column) => sumOf([column]))
  const sql = `SELECT toUnixTimestamp(t) AS s, ${sums.join(', ')} FROM series_1s GROUP BY s ${FORMAT}`
  const found = new Map<number, number[]>()
  for (const [at, ...counters] of await engine.rows(sql))
    found.set(Number(at), counters.map(Number))
  return compareSteps('every second by severity', counts.steps, found)
}

/** Bytes of live parts on disk, by table. */
export async function readTableBytes(engine: Engine): Promise<ReadonlyMap<string, number>> {
  const rows = await engine.rows(
    `SELECT table, sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'logs' GROUP BY table ORDER BY 2 DESC ${FORMAT}`,
  )
  return new Map(rows.map(([table, bytes]) => [String(table), Number(bytes)]))
}
