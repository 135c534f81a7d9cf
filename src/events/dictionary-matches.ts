import type { RequestOptions, Store } from '../clickhouse/client.js'
import { statement, type Statement } from '../clickhouse/statement.js'
import { HOUR_MS, HOUR_S } from '../model/time.js'
import { toWordSearch, type Matches, type MatchingText } from './conditions.js'
import type { EventFilter } from './filter.js'

type Params = Readonly<Record<string, unknown>>

const constantTextsSql = statement<Params, MatchingText>('event_constant_texts')
const hostsSql = statement<
  Params & { readonly from: number; readonly until: number },
  MatchingText
>('event_hosts')

/** A second thread is no faster, and without the push-down ClickHouse compares each distinct name once instead of each row. */
const SETTINGS = { max_threads: 1, query_plan_filter_push_down: 0 } as const

/** Texts of other sources would make ClickHouse read granules without a match. */
const OF_SOURCES = 'AND source IN {sources:Array(String)}'

const END_S = 0xffff_ffff

/** Finds the constant texts and hosts that contain words of a search. */
export interface Dictionary {
  /** The constant texts of any time, and the hosts of a time range. */
  matches(fromMs: number, toMs: number): Promise<Matches>
}

interface Lookup {
  readonly fromMs: number
  readonly toMs: number
  readonly matches: Promise<Matches>
}

export function createDictionary(
  store: Pick<Store, 'query'>,
  { terms, sources }: EventFilter,
  options: RequestOptions,
): Dictionary {
  const find = async <P extends Params>(
    query: Statement<P, MatchingText>,
    column: 'constant_text' | 'host',
    params: P,
  ): Promise<readonly MatchingText[]> => {
    const words = toWordSearch(terms, column)
    if (words === null) return []
    const sql = query.sql
      .replace('/*conditions*/', () => words.conditions.join(', '))
      .replace('/*of sources*/', sources === null ? '' : OF_SOURCES)
    const values = { ...params, ...words.params, ...(sources === null ? {} : { sources }) }
    return await store.query({ ...query, sql }, values, { ...options, settings: SETTINGS })
  }
  const hosts = (fromMs: number, toMs: number): Promise<readonly MatchingText[]> =>
    find(hostsSql, 'host', {
      from: Math.floor(fromMs / HOUR_MS) * HOUR_S,
      until: Math.min(Math.ceil(toMs / HOUR_MS) * HOUR_S, END_S),
    })
  let constantTexts: Promise<readonly MatchingText[]> | null = null
  const lookups: Lookup[] = []
  return {
    matches: (fromMs, toMs) => {
      const known = lookups.find((one) => one.fromMs <= fromMs && one.toMs >= toMs)
      if (known !== undefined) return known.matches
      constantTexts ??= find(constantTextsSql, 'constant_text', {})
      const matches = Promise.all([constantTexts, hosts(fromMs, toMs)]).then(
        ([ofConstantTexts, ofHosts]) => ({ constantTexts: ofConstantTexts, hosts: ofHosts }),
      )
      lookups.push({ fromMs, toMs, matches })
      matches.catch(() => {
        // An export reads again after an outage.
        constantTexts = null
        lookups.length = 0
      })
      return matches
    },
  }
}
