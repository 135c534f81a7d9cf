import type { RequestOptions, Store } from '../clickhouse/client.js'
import type { EventHints } from './event-hints.js'
import type { EventQuery } from './page.js'
import { toQuestion, type TimeRange } from './event-ranges.js'
import { toWordSearch, type FoundText, type FoundTexts, type WordSearch } from './event-search.js'
import { statement, type Statement } from '../clickhouse/statement.js'
import { HOUR_MS, HOUR_S } from '../model/time.js'

type Params = Readonly<Record<string, unknown>>

const skeletonsSql = statement<Params, FoundText>('event_constant_texts')
const hostsSql = statement<Params & { readonly from: number; readonly until: number }, FoundText>(
  'event_hosts',
)

/** A second thread gains nothing here, and names are told apart before words are looked for in them. */
const EACH_NAME_ONCE = { max_threads: 1, query_plan_filter_push_down: 0 } as const

/** What other sources have would have granules read that hold nothing of these. */
const OF_SOURCES = 'AND source IN {sources:Array(String)}'

const END_S = 0xffff_ffff

/** The skeletons and hosts that hold words of a search, looked up once for the ranges of a page. */
export interface Texts {
  /** @param range the newest one first */
  of(range: TimeRange): Promise<FoundTexts>
  /** Of all the time that is asked for, looked up at once: what `of` gives from then on. */
  ofAll(): Promise<FoundTexts>
}

/** Hosts are counted by hour: those of the newest range are looked up before it, those of all others together. */
export function createTexts(
  { answers, hints }: { readonly answers: Pick<Store, 'query'>; readonly hints: EventHints },
  query: EventQuery,
  options: RequestOptions,
): Texts {
  const { search, sources } = query.filter
  const find = async <P extends Params>(
    question: Statement<P, FoundText>,
    asked: WordSearch | null,
    params: P,
  ): Promise<readonly FoundText[]> => {
    if (asked === null) return []
    const sql = question.sql
      .replace('/*terms*/', () => asked.terms.join(', '))
      .replace('/*of sources*/', sources === null ? '' : OF_SOURCES)
    return await answers.query(
      { ...question, sql },
      { ...params, ...asked.params, ...(sources === null ? {} : { sources }) },
      {
        ...options,
        settings: EACH_NAME_ONCE,
      },
    )
  }
  const hostsWithin = (fromMs: number, toMs: number): Promise<readonly FoundText[]> =>
    find(hostsSql, toWordSearch(search, 'host'), {
      from: Math.floor(fromMs / HOUR_MS) * HOUR_S,
      until: Math.min(Math.ceil(toMs / HOUR_MS) * HOUR_S, END_S),
    })

  const findSkeletons = (): Promise<readonly FoundText[]> =>
    find(skeletonsSql, toWordSearch(search, 'constant_text'), {})
  let all: Promise<FoundTexts> | null = null
  let skeletons: Promise<readonly FoundText[]> | null = null
  let older: Promise<readonly FoundText[]> | null = null
  return {
    ofAll: () => {
      all ??= Promise.all([
        findSkeletons(),
        hostsWithin(query.fromMs, query.toMs ?? Infinity),
      ]).then(([inSkeletons, hosts]) => ({ skeletons: inSkeletons, hosts }))
      return all
    },
    of: async ({ fromMs, toMs }) => {
      if (all !== null) return await all
      if (skeletons !== null) {
        older ??= hostsWithin(query.fromMs, toMs)
        return { skeletons: await skeletons, hosts: await older }
      }
      skeletons = findSkeletons()
      const newest = hostsWithin(fromMs, toMs)
      if (fromMs > query.fromMs && hints.sufficed(toQuestion(query)) !== true) {
        older = hostsWithin(query.fromMs, fromMs)
        // whoever has his page by then does not wait for it
        older.catch(() => undefined)
      }
      const [inSkeletons, hosts] = await Promise.all([skeletons, newest])
      return { skeletons: inSkeletons, hosts }
    },
  }
}
