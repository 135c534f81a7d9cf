/** The messages of one body by outcome. */
export interface Collected {
  readonly protocol: string
  /** Distinct sources of the accepted messages; a body with several counts under no source. */
  readonly sources: readonly string[]
  readonly received: number
  readonly accepted: number
  readonly rejected: number
  readonly bytes: number
}

/** Totals since the start of this process. */
export interface CollectorFigures {
  readonly protocol: string
  /** Null for bodies with several sources or none, and for sources that were evicted. */
  readonly source: string | null
  readonly received: number
  readonly stored: number
  readonly rejected: number
  readonly bytes: number
  /** Average over the last minute. */
  readonly ratePerSecond: number
  readonly lastEventAtMs: number | null
}

/** Counts the messages that this process received, by protocol and source. */
export interface CollectorStats {
  note(collected: Collected): void
  /** Ordered by `received`, descending. */
  list(): readonly CollectorFigures[]
}

const RATE_SECONDS = 60
/** The most tallies; each takes about 700 bytes. */
const MAX_KEYS = 2_000

interface Tally {
  readonly protocol: string
  readonly source: string | null
  received: number
  stored: number
  rejected: number
  bytes: number
  lastEventAtMs: number | null
  /** Ring buffer of messages per second; second s is in slot s mod RATE_SECONDS. */
  readonly slots: Float64Array
  /** The second of the newest slot. */
  second: number
}

/** @param maxKeys above it the least recently active source is evicted and counted under no source */
export function createCollectorStats(
  nowMs: () => number = Date.now,
  maxKeys = MAX_KEYS,
): CollectorStats {
  /** Ordered by last activity, the oldest first. */
  const named = new Map<string, Tally>()
  const unnamed = new Map<string, Tally>()

  const restOf = (protocol: string): Tally => {
    const tally = unnamed.get(protocol) ?? emptyTally(protocol, null)
    unnamed.set(protocol, tally)
    return tally
  }
  const tallyOf = (protocol: string, sources: readonly string[]): Tally => {
    const [source] = sources
    if (source === undefined || sources.length > 1) return restOf(protocol)
    const key = `${protocol} ${source}`
    const tally = named.get(key) ?? emptyTally(protocol, source)
    named.delete(key)
    named.set(key, tally)
    if (named.size <= maxKeys) return tally
    const [oldest] = named
    if (oldest !== undefined) {
      named.delete(oldest[0])
      merge(restOf(oldest[1].protocol), oldest[1])
    }
    return tally
  }

  return {
    note(collected) {
      const now = nowMs()
      const tally = tallyOf(collected.protocol, collected.sources)
      tally.received += collected.received
      tally.stored += collected.accepted
      tally.rejected += collected.rejected
      tally.bytes += collected.bytes
      if (collected.accepted > 0) tally.lastEventAtMs = now
      const second = Math.floor(now / 1_000)
      advance(tally, second)
      tally.slots[second % RATE_SECONDS] =
        (tally.slots[second % RATE_SECONDS] ?? 0) + collected.received
    },
    list() {
      const second = Math.floor(nowMs() / 1_000)
      return [...named.values(), ...unnamed.values()]
        .map((tally) => toFigures(tally, second))
        .toSorted((a, b) => b.received - a.received)
    },
  }
}

const emptyTally = (protocol: string, source: string | null): Tally => ({
  protocol,
  source,
  received: 0,
  stored: 0,
  rejected: 0,
  bytes: 0,
  lastEventAtMs: null,
  slots: new Float64Array(RATE_SECONDS),
  second: 0,
})

/** Clears the slots of the seconds without a message. */
function advance(tally: Tally, second: number): void {
  const passed = Math.min(second - tally.second, RATE_SECONDS)
  for (let i = 0; i < passed; i++) tally.slots[(second - i) % RATE_SECONDS] = 0
  tally.second = Math.max(tally.second, second)
}

function merge(into: Tally, from: Tally): void {
  into.received += from.received
  into.stored += from.stored
  into.rejected += from.rejected
  into.bytes += from.bytes
  const [a, b] = [into.lastEventAtMs ?? 0, from.lastEventAtMs ?? 0]
  if (a + b > 0) into.lastEventAtMs = Math.max(a, b)
  const second = Math.max(into.second, from.second)
  advance(into, second)
  advance(from, second)
  from.slots.forEach((count, i) => {
    into.slots[i] = (into.slots[i] ?? 0) + count
  })
}

function toFigures(tally: Tally, second: number): CollectorFigures {
  advance(tally, second)
  const { protocol, source, received, stored, rejected, bytes, lastEventAtMs, slots } = tally
  const inMinute = slots.reduce((sum, count) => sum + count, 0)
  const ratePerSecond = Math.round((inMinute / RATE_SECONDS) * 100) / 100
  return { protocol, source, received, stored, rejected, bytes, ratePerSecond, lastEventAtMs }
}
