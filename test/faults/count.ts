import { PRIORITIES, SEVERITIES } from '../../src/model/event.js'
import { eventually } from '../support/live-service.js'
import { SOURCES, type Ledger } from './ledger.js'

/** Runs a query against the service's database. @returns rows by column name */
export type Query = (sql: string) => Promise<readonly Readonly<Record<string, unknown>>[]>

export interface Verdict {
  readonly acknowledged: number
  /** Acknowledged messages that are missing, in the table with most of them. */
  readonly lost: number
  /** Messages that are counted more often than they were sent. */
  readonly doubled: number
  /** Contradictions between tables. */
  readonly problems: readonly string[]
}

type Counts = Map<string, number>

const add = (counts: Counts, key: string, n: number): unknown =>
  n === 0 ? counts : counts.set(key, (counts.get(key) ?? 0) + n)

const SECONDS = { series_1s: 1, series_1m: 60, series_1h: 3600, series_1d: 86_400 } as const
const STEPS = { ...SECONDS, template_stats: 3600 } as const
type Rollup = keyof typeof STEPS

const columns = (names: readonly string[], table: string): string =>
  names.map((name) => `toInt64(sum(${table}.${name.toLowerCase()})) AS ${name}`).join(', ')

/** Compares every table with the acknowledged messages, and the tables with each other. */
export async function countAll(query: Query, ledger: Ledger): Promise<Verdict> {
  const seconds = await readRollup(query, 'series_1s')
  const sent = new Sent(ledger, seconds)
  const found = new Map<string, Counts>([['series_1s', seconds]])
  for (const table of Object.keys(STEPS) as Rollup[])
    if (!found.has(table)) found.set(table, await readRollup(query, table))
  let [lost, doubled] = [0, 0]
  const problems = [...sent.problems]
  const compare = (table: string, wanted: Counts, counts: Counts): void => {
    const [missing, beyond] = difference(wanted, counts)
    lost = Math.max(lost, missing.n)
    doubled = Math.max(doubled, beyond.n)
    if (missing.n > 0) problems.push(`${table} lacks ${missing.n}: ${missing.first}`)
    if (beyond.n > 0) problems.push(`${table} has ${beyond.n} too many: ${beyond.first}`)
  }
  for (const [table, counts] of found) compare(table, sent.rolledUp(stepOf(table)), counts)
  compare('template_totals', sent.rolledUp(0), await readTotals(query))
  compare('host_stats', sent.rolledUp(3600), await readHosts(query))
  compare('events', sent.rolledUp(1), await readEvents(query))
  compare('dead_letters', sent.broken, await readBroken(query))
  problems.push(...(await contradictions(query)))
  return { acknowledged: ledger.acknowledged, lost, doubled, problems }
}

const stepOf = (table: string): number => STEPS[table as Rollup] // one of its keys

/** The expected messages: all acknowledged ones, and those of unknown outcome that are stored. */
class Sent {
  readonly broken: Counts = new Map()
  readonly problems: string[] = []
  readonly #through: number[] = []
  readonly #ledger: Ledger

  constructor(ledger: Ledger, seconds: Counts) {
    this.#ledger = ledger
    const there = new Set([...seconds.keys()].map((key) => Number(key.split(' ')[0])))
    for (let no = 0; no < ledger.size; no++) {
      const outcome = ledger.outcomeOf(no)
      const isThere = there.has(ledger.secondOf(no))
      if ((outcome === 'refused' || outcome === 'destroyed') && isThere)
        this.problems.push(`body ${no} was ${outcome}, and is counted`)
      if (outcome === 'acknowledged' || isThere) this.#through.push(no)
      const line = ledger.brokenOf(no)
      const last = this.#through.at(-1)
      if (line !== null && last === no) add(this.broken, line, 1)
    }
  }

  /** @param step in seconds; 0 for a single bucket */
  rolledUp(step: number): Counts {
    const counts: Counts = new Map()
    for (const no of this.#through) {
      const second = this.#ledger.secondOf(no)
      const bucket = step === 0 ? 0 : Math.floor(second / step) * step
      for (const { source, severity } of this.#ledger.linesOf(no))
        add(counts, `${bucket} ${source} ${severity}`, 1)
    }
    return counts
  }
}

function difference(wanted: Counts, found: Counts) {
  const missing = { n: 0, first: '' }
  const beyond = { n: 0, first: '' }
  for (const key of new Set([...wanted.keys(), ...found.keys()])) {
    const by = (found.get(key) ?? 0) - (wanted.get(key) ?? 0)
    const side = by < 0 ? missing : beyond
    if (by !== 0 && side.n === 0)
      side.first = `${key}: ${found.get(key) ?? 0} of ${wanted.get(key) ?? 0}`
    side.n += Math.abs(by)
  }
  return [missing, beyond] as const
}

async function readRollup(query: Query, table: Rollup): Promise<Counts> {
  const rows = await query(`
    SELECT toUnixTimestamp(toDateTime(${table}.t, 'UTC')) AS bucket, ${table}.source AS name,
      ${columns(SEVERITIES, table)} FROM ${table} GROUP BY bucket, name`)
  return bySeverity(rows)
}

async function readTotals(query: Query): Promise<Counts> {
  const rows = await query(`
    SELECT 0 AS bucket, template_totals.source AS name, ${columns(SEVERITIES, 'template_totals')}
    FROM template_totals GROUP BY name`)
  return bySeverity(rows)
}

async function readHosts(query: Query): Promise<Counts> {
  const rows = await query(`
    SELECT toUnixTimestamp(t) AS bucket, source AS name,
      ${SEVERITIES.map((s) => `sumIf(host_stats.n, severity = '${s}') AS ${s}`).join(', ')}
    FROM host_stats GROUP BY bucket, name`)
  return bySeverity(rows)
}

function bySeverity(rows: readonly Readonly<Record<string, unknown>>[]): Counts {
  const counts: Counts = new Map()
  for (const row of rows)
    for (const severity of SEVERITIES)
      add(
        counts,
        `${Number(row['bucket'])} ${String(row['name'])} ${severity}`,
        Number(row[severity]),
      )
  return counts
}

/** First occurrences and repeats, by the severity of their event. */
async function readEvents(query: Query): Promise<Counts> {
  const rows = await query(`
    SELECT bucket, name, toString(level) AS severity, toInt64(sum(many)) AS total FROM
    (
      SELECT toUnixTimestamp(events.ts) AS bucket, events.source AS name, events.severity AS level, events.n AS many
      FROM events
      UNION ALL
      SELECT toUnixTimestamp(o.t), o.source, e.severity, o.n
      FROM event_occurrences AS o INNER JOIN events AS e ON e.id = o.id
    )
    GROUP BY bucket, name, level`)
  const counts: Counts = new Map()
  for (const row of rows)
    add(
      counts,
      `${Number(row['bucket'])} ${String(row['name'])} ${String(row['severity'])}`,
      Number(row['total']),
    )
  return counts
}

async function readBroken(query: Query): Promise<Counts> {
  const rows = await query('SELECT raw, count() AS total FROM dead_letters GROUP BY raw')
  return new Map(rows.map((row) => [String(row['raw']), Number(row['total'])]))
}

/** Checks that hold for any messages: events and occurrences are as many as every rollup has, by priority. */
export async function contradictions(query: Query): Promise<readonly string[]> {
  const problems: string[] = []
  const none = async (what: string, sql: string): Promise<void> => {
    const n = Number((await query(sql))[0]?.['n'] ?? 0)
    if (n > 0) problems.push(`${n} ${what}`)
  }
  await none('event ids are given twice', 'SELECT count() - uniqExact(id) AS n FROM events')
  const orphansSql =
    'SELECT count() AS n FROM event_occurrences WHERE id NOT IN (SELECT id FROM events)'
  // The repeats of a deleted source go some time after the answer.
  await eventually(
    () => query(orphansSql),
    ([row]) => Number(row?.['n']) === 0,
  ).catch(() => problems.push('repeats are of no event'))
  await none(
    'events are of no template',
    'SELECT count() AS n FROM events WHERE template_id NOT IN (SELECT template_id FROM templates)',
  )
  await none(
    'sources are not registered',
    `SELECT uniqExact(source) AS n FROM events WHERE source NOT IN
      (SELECT id FROM entities FINAL WHERE kind = 'source' AND NOT is_deleted)`,
  )
  const priorities = new Map<string, string>()
  for (const table of [...Object.keys(STEPS), 'template_totals']) {
    const [row] = await query(`SELECT ${columns(PRIORITIES, table)} FROM ${table}`)
    priorities.set(table, PRIORITIES.map((priority) => Number(row?.[priority])).join(' '))
  }
  priorities.set('events', await priorityOfEvents(query))
  if (new Set(priorities.values()).size > 1)
    problems.push(`priorities differ: ${JSON.stringify([...priorities])}`)
  const firsts = await query(`
    SELECT (SELECT count() FROM events) AS events,
      (SELECT toInt64(sum(template_stats.events)) FROM template_stats) AS hours,
      (SELECT toInt64(sum(template_totals.events)) FROM template_totals) AS totals`)
  if (new Set(Object.values(firsts[0] ?? {})).size > 1)
    problems.push(`numbers of events differ: ${JSON.stringify(firsts[0])}`)
  return problems
}

async function priorityOfEvents(query: Query): Promise<string> {
  const rows = await query(`
    SELECT toString(p) AS priority, toInt64(sum(many)) AS total FROM
    (
      SELECT auto_priority AS p, n AS many FROM events
      UNION ALL
      SELECT priority, n FROM event_occurrences
    )
    GROUP BY p`)
  const totals = new Map(rows.map((row) => [String(row['priority']), Number(row['total'])]))
  return PRIORITIES.map((priority) => totals.get(priority) ?? 0).join(' ')
}

/** The counts of several routes of the API, each of which must be the number of messages. */
export async function countByApi(
  get: <T>(path: string) => Promise<T>,
): Promise<Readonly<Record<string, number>>> {
  const days = await get<readonly { value: number }[]>('/api/logs/meta/calendar?days=730')
  const severities = await get<{ total: number }>('/api/analytics/severity-breakdown?window=30d')
  const top = await get<{ items: readonly { source: string; count: number }[] }>(
    '/api/analytics/top-sources?window=30d&limit=50',
  )
  const series = await get<{ buckets: readonly Record<string, number>[] }>(
    '/api/logs/meta/timeseries?window=30d&granularity=day',
  )
  const own = top.items.filter(({ source }) => SOURCES.some((name) => name === source))
  return {
    calendar: sum(days.map(({ value }) => value)),
    'severity breakdown': severities.total,
    'top sources': sum(own.map(({ count }) => count)),
    'time series': sum(
      series.buckets.flatMap((bucket) => SEVERITIES.map((severity) => bucket[severity] ?? 0)),
    ),
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, n) => total + n, 0)
