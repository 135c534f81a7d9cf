/*
 * What a notice says in addition to its transition: the usual value, some of the events, and links to the page. They are
 * queried before the transition is stored, and a notice waits for them for a second at most.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import { LRUCache } from 'lru-cache'

import { statement } from '../clickhouse/statement.js'
import { bound } from '../events/bind.js'
import { rowCondition } from '../events/row-condition.js'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../model/time.js'
import type { Count, CountDeps } from './count.js'
import { countersOf, type Counter } from './counter.js'
import type { CountReader } from './counts.js'
import { linksOf, queryOf, type Links } from './links.js'
import type { LoggedTransition } from './alert-log.js'
import type { Rules } from './rules.js'

export interface Facts {
  /**
   * The usual value: for a count, the median of the windows of the day before; for a share or a
   * metric, its value over that day. Null when it is not known.
   */
  readonly usual: number | null
  /** Lines of the newest events; empty for a resolved alert and for one about silence. */
  readonly samples: readonly string[]
  /** Null when the public URL is not set. */
  readonly links: Links | null
}

/** @param isBusy whether the queue is so long that queries are skipped and only links are given */
export type FactsOf = (transition: LoggedTransition, isBusy: boolean) => Promise<Facts>

interface FactsDeps extends CountDeps {
  readonly counts: CountReader
  readonly rules: Pick<Rules, 'find'>
  /** The public URL of the web page; '' when it is not set. */
  readonly publicUrl: string
}

const QUESTION_MS = 5 * SECOND_MS
/** The longest time that a notice waits for its facts. */
const WAIT_MS = SECOND_MS
const MAX_ASKING = 16
const KEPT = 200
const SAMPLE_CHARS = 200

interface Sample {
  readonly at_ms: number
  readonly source: string
  readonly host: string
  readonly severity: string
  readonly message: string
}
const samplesSql = statement<Readonly<Record<string, unknown>>, Sample>('alert_samples')

/** Creates the lookup of facts. It never rejects; facts whose query fails are left out. */
export function createFacts(deps: FactsDeps): FactsOf {
  /** The facts by transition, shared by channels and repeated attempts. */
  const known = new LRUCache<string, Promise<Omit<Facts, 'links'>>>({ max: KEPT })
  let asking = 0
  const find = async (one: LoggedTransition): Promise<Omit<Facts, 'links'>> => {
    asking++
    // A failed lookup is not cached, so that a later attempt repeats it.
    const failed = (): null => {
      known.delete(one.id)
      return null
    }
    try {
      const [usual, found] = await Promise.all([
        usualOf(deps, one).catch(failed),
        samplesOf(deps, one).catch(failed),
      ])
      const samples = found ?? []
      return { usual, samples }
    } finally {
      asking--
    }
  }
  return async (one, isBusy) => {
    const links = deps.publicUrl === '' ? null : linksOf(one, deps.publicUrl)
    const found = known.get(one.id) ?? (isBusy || asking >= MAX_ASKING ? null : find(one))
    if (found === null) return { ...NOTHING, links }
    known.set(one.id, found)
    const late = sleep(WAIT_MS, NOTHING, { ref: false })
    return { ...(await Promise.race([found, late])), links }
  }
}

const NOTHING = { usual: null, samples: [] }

async function samplesOf(
  { store, resolve, redirects }: FactsDeps,
  one: LoggedTransition,
): Promise<readonly string[]> {
  const query = one.to === 'resolved' || one.kind === 'absence' ? null : queryOf(one)
  if (query === null) return []
  const condition = bound('where', (bind) =>
    rowCondition(resolve(query), { bind, endMs: one.windowToMs, redirects: redirects() }),
  )
  const sql = samplesSql.sql.replace('/*condition*/', () => condition.sql)
  // A notice may be sent before its second is over, and the first occurrence of a repeated event can be older.
  const range = { from_ms: one.windowFromMs - HOUR_MS, to_ms: one.windowToMs + SECOND_MS }
  const params = { ...range, oldest_ms: range.from_ms - HOUR_MS, ...condition.params }
  const options = { timeoutMs: QUESTION_MS, isSearch: true, settings: { max_threads: 1 } }
  return (await store.query({ ...samplesSql, sql }, params, options)).map(toLine)
}

function toLine({ at_ms: atMs, source, host, severity, message }: Sample): string {
  const from = [new Date(atMs).toISOString(), severity, source, host].filter((one) => one !== '')
  const text = message.replaceAll(/\s+/g, ' ')
  return `${from.join(' ')}: ${text.length > SAMPLE_CHARS ? `${text.slice(0, SAMPLE_CHARS)}…` : text}`
}

async function usualOf(
  { counts, rules }: FactsDeps,
  one: LoggedTransition,
): Promise<number | null> {
  const kind = rules.find(one.ruleId)?.fields.kind
  const { part: _part, ...whole } = one
  const query = queryOf(whole)
  if (kind === undefined || kind.type !== one.kind || query === null) return null
  const counters = countersOf(kind, query)
  if ('path' in counters) return null
  if (kind.type === 'threshold') return await usualCount(counts, counters, one)
  if (kind.type === 'ratio') return await usualShare(counts, counters, one)
  return kind.type === 'value' ? await usualMetric(counts, counters, one) : null
}

type Usual = (
  counts: CountReader,
  counters: readonly Counter[],
  transition: LoggedTransition,
) => Promise<number | null>

const usualCount: Usual = async (counts, counters, { windowFromMs, windowToMs }) => {
  const windowMs = windowToMs - windowFromMs
  const windows = Math.max(1, Math.floor(DAY_MS / windowMs))
  const last = Math.floor(windowFromMs / windowMs)
  const range = { fromMs: (last - windows) * windowMs, toMs: last * windowMs }
  const [all] = await pastCounts(counts, counters, { ...range, everyMs: windowMs })
  return all === undefined ? null : medianOf(all, windows)
}

const usualShare: Usual = async (counts, counters, { windowFromMs }) => {
  const toMs = Math.floor(windowFromMs / SECOND_MS) * SECOND_MS
  const day = { everyMs: DAY_MS, fromMs: toMs - DAY_MS, toMs }
  const [part = 0, total = 0] = (await pastCounts(counts, counters, day)).map(sumOf)
  return total === 0 ? null : part / total
}

const usualMetric: Usual = async (counts, counters, { windowFromMs }) => {
  const ofDay = counters.map((one) => (one.kind === 'value' ? { ...one, windowMs: DAY_MS } : one))
  const toMs = Math.floor(windowFromMs / MINUTE_MS) * MINUTE_MS
  const day = { everyMs: MINUTE_MS, fromMs: toMs - MINUTE_MS, toMs }
  const [values] = await pastCounts(counts, ofDay, day)
  return values?.[0]?.count ?? null
}

async function pastCounts(
  counts: CountReader,
  counters: readonly Counter[],
  asked: { readonly everyMs: number; readonly fromMs: number; readonly toMs: number },
): Promise<readonly (readonly Count[])[]> {
  const { everyMs, ...span } = asked
  const requests = counters.map((counter) => ({ counter, groupBy: [], everyMs, isLast: false }))
  const range = { ...span, isPast: true }
  const found = await counts.read(requests, range, { timeoutMs: QUESTION_MS, isSearch: true })
  return found.map((one) => {
    if (one instanceof Error) throw one
    return one
  })
}

const sumOf = (all: readonly Count[]): number => all.reduce((sum, { count }) => sum + count, 0)

/** The median of all windows. Windows with a count of 0 are not among the rows. */
function medianOf(all: readonly Count[], windows: number): number {
  const bySlot = new Map<number, number>()
  for (const { slot, count } of all) bySlot.set(slot, (bySlot.get(slot) ?? 0) + count)
  const counts = [...bySlot.values()].toSorted((a, b) => a - b)
  const at = Math.floor(windows / 2) - (windows - counts.length)
  return counts[at] ?? 0
}
