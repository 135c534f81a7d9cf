import { Session, type Profiler } from 'node:inspector'

type Range = readonly [from: number, to: number]

/** Tells what of the program has run, to the block, by V8's precise coverage. */
export class Coverage {
  readonly #session = new Session()
  readonly #part: RegExp
  /** by function: what of it has never run */
  readonly #missing = new Map<string, readonly Range[]>()

  /** @param part of the program that counts, by the paths of its files */
  constructor(part: RegExp) {
    this.#part = part
    this.#session.connect()
    this.#post('Profiler.enable')
    this.#post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  }

  /** functions that have run */
  get functions(): number {
    return this.#missing.size
  }

  /** characters of them that have not */
  get missing(): number {
    return [...this.#missing.values()].reduce((sum, ranges) => sum + lengthOf(ranges), 0)
  }

  /** Whether something ran since the last call of any of these that never ran before. */
  hasNews(): boolean {
    return this.#take().some(([key, ranges]) => this.#isNews(key, ranges))
  }

  /** As `hasNews`, and takes note of it. */
  note(): boolean {
    let isNews = false
    for (const [key, ranges] of this.#take()) {
      if (!this.#isNews(key, ranges)) continue
      isNews = true
      this.#missing.set(key, common(this.#missing.get(key) ?? ranges, ranges))
    }
    return isNews
  }

  /** Begins anew. */
  forget(): void {
    this.#take()
    this.#missing.clear()
  }

  /** What ran up to now is nobody's doing. */
  skip(): void {
    this.#take()
  }

  end(): void {
    this.#post('Profiler.stopPreciseCoverage')
    this.#session.disconnect()
  }

  #isNews(key: string, ranges: readonly Range[]): boolean {
    const known = this.#missing.get(key)
    return known === undefined || lengthOf(common(known, ranges)) < lengthOf(known)
  }

  /** Each function that ran, and what of it did not. */
  #take(): readonly (readonly [key: string, missing: readonly Range[]])[] {
    const found: [string, readonly Range[]][] = []
    this.#session.post('Profiler.takePreciseCoverage', (error, { result }) => {
      if (error !== null) throw error
      for (const script of result) if (this.#part.test(script.url)) found.push(...ran(script))
    })
    return found
  }

  #post(method: string, params: object = {}): void {
    this.#session.post(method, params, (error) => {
      if (error !== null) throw error
    })
  }
}

/** Names of the functions of a part of the program that run meanwhile. */
export async function functionsRun(
  part: RegExp,
  work: () => Promise<void>,
): Promise<ReadonlySet<string>> {
  const session = new Session()
  session.connect()
  const post = (method: string, params: object = {}): void => session.post(method, params)
  post('Profiler.enable')
  post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  await work()
  const names = new Set<string>()
  session.post('Profiler.takePreciseCoverage', (error, { result }) => {
    if (error !== null) throw error
    for (const { functions } of result.filter(({ url }) => part.test(url)))
      for (const { functionName, ranges } of functions)
        if ((ranges[0]?.count ?? 0) > 0) names.add(functionName)
  })
  session.disconnect()
  return names
}

function ran({ url, functions }: Profiler.ScriptCoverage): [string, readonly Range[]][] {
  return functions.flatMap(({ ranges }): [string, readonly Range[]][] => {
    const [whole] = ranges
    if (whole === undefined || whole.count === 0) return []
    const missing = ranges
      .filter(({ count }) => count === 0)
      .map(({ startOffset, endOffset }): Range => [startOffset, endOffset])
    return [[`${url}:${whole.startOffset}`, missing.toSorted(([a], [b]) => a - b)]]
  })
}

const lengthOf = (ranges: readonly Range[]): number =>
  ranges.reduce((sum, [from, to]) => sum + to - from, 0)

/** What lies in both; each is in order and without overlaps. */
function common(a: readonly Range[], b: readonly Range[]): readonly Range[] {
  const both: Range[] = []
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    const [aFrom, aTo] = a[i] ?? [0, 0]
    const [bFrom, bTo] = b[j] ?? [0, 0]
    const [from, to] = [Math.max(aFrom, bFrom), Math.min(aTo, bTo)]
    if (from < to) both.push([from, to])
    if (aTo < bTo) i++
    else j++
  }
  return both
}
