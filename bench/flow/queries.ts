import { MINUTE_MS, HOUR_MS, DAY_MS } from '../../src/model/time.js'

/** One kind of question, asked in alternating variants so that no answer repeats the last one. */
export interface Query {
  readonly name: string
  /** The name under which questions are grouped under load. */
  readonly group: 'rollup' | 'list' | 'search' | 'point'
  readonly paths: readonly string[]
}

/** Rare events that the bench sends for searches. */
export const RARE_SOURCE = 'bench-rare'
export const RARE_WORD = 'quetzalcoatl'

/** Twenty events over 30 days from a source without others; five of them contain a unique word. */
export function rareLines(nowMs: number): readonly string[] {
  return Array.from({ length: 20 }, (_, i) => {
    const timestamp = new Date(nowMs - MINUTE_MS - i * 1.4 * DAY_MS).toISOString()
    const message = `maintenance window ${i} ${i % 4 === 0 ? RARE_WORD : 'ended'}`
    return JSON.stringify({
      timestamp,
      source: RARE_SOURCE,
      host: 'bench',
      severity: 'INFO',
      message,
    })
  })
}

const WINDOWS = ['5s', '1m', '15m', '1h', '24h', '7d', '30d'] as const

const MONTH_MS = 30 * 24 * HOUR_MS

const sinceAgo = (nowMs: number, spanMs: number): string =>
  `&start_time=${new Date(nowMs - spanMs).toISOString()}`

/** Histograms, facets and stats of one day. Rollups answer those of the group `rollup`, events the others. */
function countingQueries(sources: readonly string[], day: string): Query[] {
  const of =
    (group: Query['group']) =>
    (name: string, ...paths: readonly string[]) => ({
      name,
      group,
      paths: paths.map((path) => `/api/logs/${path}&${day}`),
    })
  const [rollup, search] = [of('rollup'), of('search')]
  return [
    rollup('histogram 24h by severity', 'histogram?by=severity'),
    rollup('histogram 24h of errors by source', 'histogram?by=source&severity=ERROR'),
    rollup(
      'histogram 24h of a source',
      ...sources.map((name) => `histogram?by=priority&source=${name}`),
    ),
    rollup('facets 24h: severity, source', 'facets?fields=severity,source'),
    rollup('facets 24h: host, template', 'facets?fields=host,template'),
    rollup('stats 24h: count by source', 'stats?by=source&step=1h'),
    search('histogram 24h by host, minutes', 'histogram?by=host&buckets=300'),
    search('histogram 24h of a common word', 'histogram?by=severity&q=failed'),
    search('histogram 24h of a rare word', `histogram?by=severity&q=${RARE_WORD}`),
    search('facets 24h of a common word', 'facets?fields=severity,host&q=connection'),
    search('stats 24h of a phrase by host', 'stats?by=host&q=%22too%20many%20clients%22'),
  ]
}

/** The questions of dashboards and of searches. */
export function standardQueries(sources: readonly string[], nowMs: number): Query[] {
  const some = sources.slice(0, 20).map(encodeURIComponent)
  const list = (name: string, ...paths: readonly string[]): Query => ({
    name,
    group: 'list',
    paths,
  })
  const search = (name: string, ...paths: readonly string[]): Query => ({
    name,
    group: 'search',
    paths,
  })
  const rollup = (name: string, ...paths: readonly string[]): Query => ({
    name,
    group: 'rollup',
    paths,
  })
  const logs = '/api/logs?limit=50'
  const since = sinceAgo(nowMs, HOUR_MS)
  const month = sinceAgo(nowMs, MONTH_MS)
  return [
    ...WINDOWS.map((window) =>
      rollup(`time series ${window}`, `/api/logs/meta/timeseries?window=${window}`),
    ),
    rollup(
      'time series 24h of a source',
      ...some.map((name) => `/api/logs/meta/timeseries?window=24h&source=${name}`),
    ),
    rollup('time series 30d, 50 buckets', '/api/logs/meta/timeseries?window=30d&limit=50'),
    rollup('calendar 365 days', '/api/logs/meta/calendar'),
    rollup('calendar P1', '/api/logs/meta/calendar?priority=P1'),
    rollup('severity breakdown 24h', '/api/analytics/severity-breakdown?window=24h'),
    rollup('severity breakdown 30d', '/api/analytics/severity-breakdown?window=30d'),
    rollup('top sources 24h', '/api/analytics/top-sources?window=24h'),
    rollup('top sources 30d', '/api/analytics/top-sources?window=30d'),
    rollup('top templates', '/api/logs/meta/templates'),
    rollup('kpis cached', '/api/kpis'),
    list('newest 50', logs),
    list('newest 50 errors', `${logs}&severity=ERROR`),
    list(
      'newest 50 errors of a source',
      ...some.map((name) => `${logs}&severity=ERROR&source=${name}`),
    ),
    list('newest 50 of P1 and P2', `${logs}&priority=P1&priority=P2`),
    list('error or worse, last hour', `${logs}&is_error_or_worse=true${since}`),
    list(
      'source and severity, last hour',
      ...some.map((name) => `${logs}&severity=INFO&source=${name}${since}`),
    ),
    list('rare source, 30 days', `${logs}&source=${RARE_SOURCE}${month}`),
    list('rare severity, 30 days', `${logs}&severity=CRITICAL${month}`),
    list(
      'rare severity of a source',
      ...some.map((name) => `${logs}&severity=CRITICAL&source=${name}`),
    ),
    search('rare word, 30 days', `${logs}&search=${RARE_WORD}${month}`),
    search('common word', `${logs}&search=failed`, `${logs}&search=connection`),
    search('two words', `${logs}&search=failed%20password`, `${logs}&search=block%20terminating`),
    search('prefix', `${logs}&search=${RARE_WORD.slice(0, 8)}*`),
    list('oldest 50', `${logs}&order=asc`),
    search('phrase', `${logs}&search=%22sorry,%20too%20many%20clients%22`),
    search('a host and a word', `${logs}&search=web-01%20error`, `${logs}&search=db-02%20session`),
    search('a word that never occurs', `${logs}&search=nonexistentword`),
    ...countingQueries(some, sinceAgo(nowMs, DAY_MS).slice(1)),
  ]
}
