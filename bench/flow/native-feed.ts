import { Corpus, type CorpusOptions } from '../data/corpus.js'
import { LandingRows } from '../data/landing-rows.js'
import type { Engine } from '../lib/engine.js'

const BLOCK_EVENTS = 500_000
/** Greater than all ids of a service. */
const FIRST_ID = 2 ** 41

export interface Fed {
  readonly cpuS: number
  readonly seconds: number
}

/**
 * The cost of ClickHouse for a corpus in blocks of the Native format, generated in advance and of its preferred size,
 * inserted into the same tables without parsing, mining and merges. It is the lower bound of this schema.
 */
export async function feedNative(engine: Engine, options: CorpusOptions): Promise<Fed> {
  const rows = new LandingRows(options.seed, options.sources)
  await engine.rows('SYSTEM STOP MERGES')
  let fed: Fed = { cpuS: 0, seconds: 0 }
  for (let from = 0; from < options.events; from += BLOCK_EVENTS) {
    const part = partOf(options, from, Math.min(from + BLOCK_EVENTS, options.events))
    const bytes = rows.block(new Corpus(part), FIRST_ID + from, () => Date.now())
    const [cpuS, startMs] = [engine.cpuS(), performance.now()]
    await engine.insert('landing', rows.columns, bytes, `bench-limit:${from}`)
    const seconds = (performance.now() - startMs) / 1000
    fed = { cpuS: fed.cpuS + engine.cpuS() - cpuS, seconds: fed.seconds + seconds }
  }
  return fed
}

function partOf(options: CorpusOptions, from: number, until: number): CorpusOptions {
  const at = (event: number): number =>
    options.startMs + Math.floor((event / options.events) * options.spanMs)
  const [startMs, seed] = [at(from), options.seed + from]
  return { ...options, seed, startMs, events: until - from, spanMs: at(until) - startMs }
}
