import { SEVERITIES } from '../../src/model/event.js'
import type { Corpus, CorpusEvent } from './corpus.js'

/** The counts of one source. */
export interface SourceTally {
  readonly count: number
  /** ERROR and CRITICAL. */
  readonly errors: number
  readonly lastMs: number
}

/** Exact counts of a stream; plain data that passes between processes. */
export interface Counts {
  readonly events: number
  /** By index into SEVERITIES. */
  readonly severities: readonly number[]
  readonly sources: ReadonlyMap<string, SourceTally>
  /** Counts by severity, by the start of the step in seconds since 1970. */
  readonly steps: ReadonlyMap<number, readonly number[]>
  readonly stepS: number
  readonly latestMs: number
}

const FIRST_ERROR = SEVERITIES.indexOf('ERROR')

/** Counts messages as they are generated, as the oracle for the service's counts. */
export class Tally {
  readonly #stepS: number
  readonly #severities = SEVERITIES.map(() => 0)
  readonly #sources = new Map<string, { count: number; errors: number; lastMs: number }>()
  readonly #steps = new Map<number, number[]>()
  #events = 0
  #latestMs = 0

  /** @param stepS 1 for exact seconds; memory grows with the number of steps that hold events */
  constructor(stepS: number) {
    this.#stepS = stepS
  }

  add({ timestampMs, source, severity }: Pick<CorpusEvent, 'timestampMs' | 'source' | 'severity'>): void {
    this.#events++
    bump(this.#severities, severity)
    this.#latestMs = Math.max(this.#latestMs, timestampMs)
    this.#addToStep(timestampMs, severity)
    const known = this.#sources.get(source)
    if (known === undefined) {
      const errors = severity >= FIRST_ERROR ? 1 : 0
      this.#sources.set(source, { count: 1, errors, lastMs: timestampMs })
      return
    }
    known.count++
    if (severity >= FIRST_ERROR) known.errors++
    known.lastMs = Math.max(known.lastMs, timestampMs)
  }

  counts(): Counts {
    return {
      events: this.#events,
      severities: this.#severities,
      sources: this.#sources,
      steps: this.#steps,
      stepS: this.#stepS,
      latestMs: this.#latestMs,
    }
  }

  #addToStep(timestampMs: number, severity: number): void {
    const second = Math.floor(timestampMs / 1000)
    const step = second - (second % this.#stepS)
    const counters = this.#steps.get(step)
    if (counters !== undefined) return bump(counters, severity)
    const fresh = SEVERITIES.map(() => 0)
    bump(fresh, severity)
    this.#steps.set(step, fresh)
  }
}

function bump(counters: number[], at: number): void {
  counters[at] = (counters[at] ?? 0) + 1
}

/** Sums the counts to longer steps. @param stepS a multiple of the tally's step, such as 60, 3600, 86400 */
export function widenSteps(counts: Counts, stepS: number): Map<number, number[]> {
  const wide = new Map<number, number[]>()
  for (const [second, counters] of counts.steps) {
    const start = second - (second % stepS)
    const into = wide.get(start) ?? SEVERITIES.map(() => 0)
    counters.forEach((n, severity) => (into[severity] = (into[severity] ?? 0) + n))
    wide.set(start, into)
  }
  return wide
}

/** Sums the counts of two streams. */
export function addCounts(a: Counts, b: Counts): Counts {
  const sources = new Map(a.sources)
  for (const [name, more] of b.sources) {
    const own = sources.get(name) ?? { count: 0, errors: 0, lastMs: 0 }
    const lastMs = Math.max(own.lastMs, more.lastMs)
    sources.set(name, { count: own.count + more.count, errors: own.errors + more.errors, lastMs })
  }
  const steps = new Map([...a.steps].map(([at, counters]) => [at, [...counters]]))
  for (const [at, counters] of b.steps) {
    const own = steps.get(at)
    steps.set(at, own === undefined ? [...counters] : own.map((n, i) => n + (counters[i] ?? 0)))
  }
  return {
    events: a.events + b.events,
    severities: a.severities.map((n, i) => n + (b.severities[i] ?? 0)),
    sources,
    steps,
    stepS: a.stepS,
    latestMs: Math.max(a.latestMs, b.latestMs),
  }
}

/**
 * Counts distinct events by brute force, with the messages taken in the order of the streams. A message repeats an event when
 * source, severity, host, message and tags are equal and its time is within the window that begins with the first occurrence.
 */
export function countDistinct(corpora: readonly Corpus[], windowMs: number): number {
  const firstsOf = new Map<string, number[]>()
  let distinct = 0
  for (const corpus of corpora)
    for (let event = corpus.next(); event !== null; event = corpus.next()) {
      const at = event.timestampMs
      const key = [event.source, event.severity, event.host, event.message, event.tags].join('\u0000')
      const firsts = firstsOf.get(key)
      if (firsts?.some((first) => first <= at && at < first + windowMs) === true) continue
      distinct++
      if (firsts === undefined) firstsOf.set(key, [at])
      else firsts.push(at)
    }
  return distinct
}
