import { SEVERITIES } from '../../src/model/event.js'
import { field, listField, numberField, textField } from '../lib/api.js'
import type { Engine } from '../lib/engine.js'
import type { Check } from '../lib/report.js'
import { DAY_S } from '../../src/model/time.js'

/** A request and its reply. */
export interface Asked {
  readonly name: string
  readonly path: string
  readonly reply: unknown
  readonly atMs: number
}

interface Question extends Asked {
  readonly params: URLSearchParams
}

const CHECK = 'answers are what a plain reading of the rows gives'
/** Windows begin and end at whole steps, which may be included or not. */
const WINDOWS: Readonly<Record<string, { readonly lengthS: number; readonly edgeS: number }>> = {
  '24h': { lengthS: DAY_S, edgeS: 120 },
  '30d': { lengthS: 30 * DAY_S, edgeS: 3720 },
}
const STEP_S: Readonly<Record<string, number>> = { second: 1, minute: 60, hour: 3600, day: 86_400 }

/**
 * Compares replies with those of ClickHouse to the same query without rollups, indexes and
 * dictionaries, which reads every row, joins its message, and compares it.
 */
export async function checkAnswers(engine: Engine, asked: readonly Asked[]): Promise<Check[]> {
  const checks: Check[] = []
  for (const one of asked) {
    const { pathname, searchParams } = new URL(one.path, 'http://api')
    const compare = COMPARERS[pathname]
    if (compare === undefined) continue
    const wrong = await compare(engine, { ...one, params: searchParams })
    checks.push({ name: CHECK, ok: wrong === '', detail: `${one.name}: ${wrong}` })
  }
  return checks
}

/** The checks by question. Each returns the difference; '' for a correct answer. */
const COMPARERS: Readonly<Record<string, (engine: Engine, question: Question) => Promise<string>>> =
  {
    '/api/logs': compareList,
    '/api/analytics/severity-breakdown': compareBreakdown,
    '/api/analytics/top-sources': compareSources,
    '/api/logs/meta/timeseries': compareSeries,
  }

const read = (engine: Engine, sql: string): Promise<readonly (readonly unknown[])[]> =>
  engine.rows(`${sql} SETTINGS use_skip_indexes = 0 FORMAT JSONCompactEachRow`)

async function compareList(engine: Engine, { params, reply, atMs }: Question): Promise<string> {
  const order = params.get('order') === 'asc' ? 'ASC' : 'DESC'
  const rows = await read(
    engine,
    `SELECT id FROM events WHERE ${toWhere(params, atMs)} ORDER BY ts ${order}, id ${order} LIMIT ${Number(params.get('limit'))}`,
  )
  const want = rows.map(([id]) => Number(id))
  const got = listField(reply, 'items').map((item) => numberField(item, 'id'))
  if (got.join() === want.join()) return ''
  const both = got.filter((id) => want.includes(id)).length
  return `${got.length} events, ${both} of them among the ${want.length} that it should be`
}

/** The filters of a list; their values are constants of the bench and need no escaping. */
function toWhere(params: URLSearchParams, atMs: number): string {
  const of = (column: string): string[] => {
    const values = params.getAll(column).map(quote)
    return values.length === 0 ? [] : [`${column} IN (${values.join(', ')})`]
  }
  const since = params.get('start_time')
  const sinceMs = since === null ? Math.floor(atMs / 1000 - 30 * DAY_S) * 1000 : Date.parse(since)
  return [
    `received_at <= fromUnixTimestamp64Milli(${atMs})`,
    ...['severity', 'source', 'priority'].flatMap(of),
    ...(params.has('is_error_or_worse') ? ["severity IN ('ERROR', 'CRITICAL')"] : []),
    `ts >= fromUnixTimestamp64Milli(${sinceMs})`,
    ...toTerms(params.get('search') ?? ''),
  ].join(' AND ')
}

const quote = (text: string): string =>
  `'${text.replaceAll('\\', '\\\\').replaceAll("'", String.raw`\'`)}'`

const PARTS = String.raw`splitByChar('\x01', constant_text)`
/** The constant texts and the variables between them, alternating. */
const MESSAGE = String.raw`if(constant_text = '', variables, arrayStringConcat(arrayMap((text, value) -> concat(text, value), ${PARTS}, arrayResize(splitByChar('\x01', variables), length(${PARTS})))))`
const TEXT = `lower(concat(${MESSAGE}, ' ', host, ' ', trace_id))`

/** Words, prefixes and quoted phrases, each searched in the whole text. */
const toTerms = (search: string): string[] =>
  (search.match(/"[^"]*"|\S+/g) ?? []).flatMap((term) => {
    if (term.startsWith('"'))
      return [`position(lower(${MESSAGE}), ${quote(term.slice(1, -1).toLowerCase())}) > 0`]
    const words = term.toLowerCase().match(/[a-z0-9]+/g) ?? []
    const end = (i: number): string =>
      term.endsWith('*') && i === words.length - 1 ? '' : String.raw`([^\pL\pN]|$)`
    return words.map(
      (word, i) => `match(${TEXT}, ${quote(String.raw`(^|[^\pL\pN])${word}${end(i)}`)})`,
    )
  })

/** Every message, including repeats, that had arrived when the question was asked. */
const occurrences = (atMs: number): string => `(
    SELECT toUnixTimestamp(ts) AS s, severity, source, toInt64(n) AS n FROM events
    WHERE received_at <= fromUnixTimestamp64Milli(${atMs})
    UNION ALL
    SELECT toUnixTimestamp(repeats.t) AS s, firsts.severity, firsts.source, repeats.n
    FROM events AS firsts JOIN event_occurrences AS repeats ON firsts.id = repeats.id
    WHERE firsts.received_at <= fromUnixTimestamp64Milli(${atMs}))`

const ofSource = (params: URLSearchParams): string =>
  params.has('source') ? `source = ${quote(params.get('source') ?? '')}` : '1'

/**
 * Counts rows by severity or source, twice: rows that are certainly in the window, and rows that
 * may be, because the window moves during the request.
 */
async function windowCounts(
  engine: Engine,
  by: 'severity' | 'source',
  { params, atMs }: Question,
): Promise<ReadonlyMap<string, readonly [least: number, most: number]>> {
  const { lengthS = Number.NaN, edgeS = 0 } = WINDOWS[params.get('window') ?? ''] ?? {}
  const endS = Math.floor(atMs / 1000)
  const startS = endS - lengthS
  const surely = `s >= ${startS + edgeS} AND s < ${endS - edgeS}`
  const rows = await read(
    engine,
    `SELECT ${by}, sumIf(n, ${surely}), sum(n) FROM ${occurrences(atMs)} WHERE s >= ${startS - edgeS} GROUP BY ${by}`,
  )
  return new Map(rows.map(([name, least, most]) => [String(name), [Number(least), Number(most)]]))
}

async function compareBreakdown(engine: Engine, question: Question): Promise<string> {
  const want = await windowCounts(engine, 'severity', question)
  const items = listField(question.reply, 'items')
  return SEVERITIES.flatMap((severity) => {
    const item = items.find((one) => field(one, 'severity') === severity)
    return outside(severity, numberField(item, 'count'), want.get(severity) ?? [0, 0])
  }).join(', ')
}

async function compareSources(engine: Engine, question: Question): Promise<string> {
  const want = await windowCounts(engine, 'source', question)
  const items = listField(question.reply, 'items')
  const listed = items.map((item) => textField(item, 'source'))
  const last = Math.min(...items.map((item) => numberField(item, 'count')))
  const missing = [...want].filter(([name, [least]]) => least > last && !listed.includes(name))
  const wrong = items.flatMap((item) => {
    const name = textField(item, 'source')
    return outside(name, numberField(item, 'count'), want.get(name) ?? [0, 0])
  })
  return [...wrong, ...missing.map(([name]) => `${name} is missing`)].join(', ')
}

const outside = (name: string, got: number, [least, most]: readonly [number, number]): string[] =>
  got >= least && got <= most ? [] : [`${name} ${got}, not in ${least}..${most}`]

/** All given steps except the first and the last. */
async function compareSeries(engine: Engine, question: Question): Promise<string> {
  const { params, reply, atMs } = question
  const stepS = STEP_S[textField(reply, 'granularity')] ?? Number.NaN
  const given = listField(reply, 'buckets').map(
    (bucket) =>
      [
        Date.parse(textField(bucket, 't')) / 1000,
        SEVERITIES.map((severity) => numberField(bucket, severity)).join(),
      ] as const,
  )
  const inner = given.slice(1, -1)
  const [[firstS] = [0], [lastS] = [0]] = [given[0], given.at(-1)]
  const sums = SEVERITIES.map((severity) => `sumIf(n, severity = '${severity}')`)
  const rows = await read(
    engine,
    `SELECT intDiv(s, ${stepS}) * ${stepS} AS step, ${sums.join(', ')} FROM ${occurrences(atMs)}
     WHERE s >= ${firstS + stepS} AND s < ${lastS} AND ${ofSource(params)} GROUP BY step`,
  )
  const want = new Map(rows.map(([step, ...counts]) => [Number(step), counts.join()]))
  const wrong = inner.filter(([at, counts]) => want.get(at) !== counts).length
  if (given.length < 3 || (wrong === 0 && inner.length === want.size)) return ''
  return `${wrong} of ${inner.length} steps are wrong, ${want.size} should be there`
}
