/*
 * Whether every acknowledged message is stored. Two sides are counted independently:
 *
 * - What was acknowledged: each instance counts messages when it replies, in its memory, by the time at which they were received.
 * - What is in ClickHouse: occurrences of events and dead letters, by the same time, which their rows hold.
 *
 * Both are compared from `sinceMs` to `untilMs`. Everything that was received before `untilMs` has left the write-ahead logs of
 * all instances. When an instance starts or stops answering, or when somebody deletes events or dead letters, one of the two counts
 * is unknown for the time before. Then both counts start again from that moment. Instances share their counts through the shared state.
 *
 * ClickHouse counts all rows of the span each time, so that a row which is lost or stored again later is found too. That takes
 * longer the more events there are; the pause until the next count grows with it, and all who ask meanwhile get the same report.
 */

import type { Store } from '../clickhouse/client.js'
import { answerWhole } from '../clickhouse/cluster/partial.js'
import { statement } from '../clickhouse/statement.js'
import type { State } from '../coordination/state.js'
import { DAY_MS, SECOND_MS } from '../model/time.js'

export interface LedgerReport {
  readonly sinceMs: number
  /** Exclusive end of the compared span. The span is empty while it equals `sinceMs`. */
  readonly untilMs: number
  readonly acknowledged: number
  readonly stored: number
  readonly deadLetters: number
  /** Acknowledged since the instances started, and in their write-ahead logs only. */
  readonly waiting: number
}

export type Ledger = Awaited<ReturnType<typeof openLedger>>

interface LedgerDeps {
  readonly store: Pick<Store, 'query'>
  readonly state: Pick<State, 'kind' | 'publish' | 'subscribe'>
  /** The id of this instance. */
  readonly self: string
  readonly nowMs?: () => number
}

/** What the pipeline has accepted and ClickHouse may not have yet. */
interface Taken {
  /** Milliseconds since the arrival of the oldest request body whose rows may not all be in ClickHouse yet. */
  readonly oldestMs: number
  readonly waiting: number
}

/** The counts that one instance publishes. */
interface Counts {
  readonly instance: string
  readonly sinceMs: number
  readonly untilMs: number
  readonly waiting: number
  /** Messages by the number of the slot of their arrival. */
  readonly slots: readonly (readonly [slot: number, messages: number])[]
}

/** The length of a slot; comparisons begin and end at multiples of it. */
const SLOT_MS = 10 * SECOND_MS
/** The longest span that is compared. Repeats are kept by arrival for two days. */
const LONGEST_MS = DAY_MS
const MOST_SLOTS = LONGEST_MS / SLOT_MS + 1
/** The longest time between the durable record and the reply. */
const REPLY_MS = 2 * SECOND_MS
const PUBLISH_EVERY_MS = 10 * SECOND_MS
/** An instance whose counts have not arrived for this long counts as gone. */
const SILENT_MS = 35 * SECOND_MS
const CHANNEL = 'ledger'
/** The shortest time for which a report is reused. */
const FRESH_MS = 5 * SECOND_MS
/** Largest share of the time in which ClickHouse counts. */
const SHARE = 0.05

const storedSql = statement<
  { readonly from_ms: number; readonly to_ms: number },
  { readonly stored: number; readonly dead: number }
>('ledger_stored')

export async function openLedger(deps: LedgerDeps) {
  const { store, state, self, nowMs = Date.now } = deps
  const isShared = state.kind === 'redis'
  const slots = createSlots()
  const heard = createHeard(nowMs)
  let sinceMs = nowMs()
  /** Before the start nothing is accepted, and no counts are published. */
  let taken: Taken = { oldestMs: 0, waiting: 0 }
  let timer: NodeJS.Timeout | undefined

  const own = (): Counts => ({
    instance: self,
    sinceMs,
    untilMs: nowMs() - taken.oldestMs - REPLY_MS,
    waiting: taken.waiting,
    slots: slots.list(),
  })
  /**
   * Drops the counts of instances that are gone. What such an instance acknowledged last is not
   * known. Without the shared state all others count as gone.
   */
  const forgetSilent = (): void => {
    if (heard.forgetSilent()) sinceMs = Math.max(sinceMs, nowMs())
  }
  const reports = shareReports(nowMs, async () => {
    forgetSilent()
    const others = heard.list().filter(({ instance }) => instance !== self)
    // An instance that does not receive its own counts may miss those of others too.
    const isDeaf = isShared && !heard.has(self)
    return await withStored(store, sumUp([own(), ...others], isDeaf ? 0 : nowMs()))
  })
  /** Publishes this instance's counts; this also happens every ten seconds. */
  const publish = async (): Promise<void> => {
    forgetSilent()
    await state.publish(CHANNEL, JSON.stringify(own())).catch(() => undefined)
  }
  const restart = (): void => {
    sinceMs = Math.max(sinceMs, nowMs())
    reports.forget()
    if (timer !== undefined) void publish()
  }
  const unsubscribe = isShared
    ? await state.subscribe(CHANNEL, (message) => {
        const counts = JSON.parse(message) as Counts // of an instance of this program
        // A start or a deletion of another instance.
        if (heard.note(counts)) reports.forget()
      })
    : null
  return {
    /** Begins to compare, and to publish the counts of this instance. */
    start: (pipeline: Taken): void => {
      taken = pipeline
      if (!isShared) return
      // Counting begins when each instance has received the counts of all others.
      sinceMs = nowMs() + SILENT_MS
      timer = setInterval(() => void publish(), PUBLISH_EVERY_MS).unref()
    },
    /** Counts a message, when the reply is sent. */
    acknowledged: slots.add,
    /** Runs a deletion; the comparison restarts after it. */
    deleting: async <T>(work: () => Promise<T>): Promise<T> => {
      restart()
      return await work().finally(restart)
    },
    restart,
    publish,
    report: reports.get,
    close: (): void => {
      clearInterval(timer)
      unsubscribe?.()
    },
  }
}

/** The latest counts of each instance. */
function createHeard(nowMs: () => number) {
  const heard = new Map<string, Counts & { readonly heardMs: number }>()
  return {
    has: (instance: string): boolean => heard.has(instance),
    list: (): readonly Counts[] => [...heard.values()],
    /** @returns whether the instance restarted its counts */
    note: (counts: Counts): boolean => {
      const before = heard.get(counts.instance)
      heard.set(counts.instance, { ...counts, heardMs: nowMs() })
      return before?.sinceMs !== counts.sinceMs
    },
    /** @returns whether an instance was gone */
    forgetSilent: (): boolean => {
      const gone = [...heard.values()].filter(({ heardMs }) => nowMs() - heardMs >= SILENT_MS)
      for (const { instance } of gone) heard.delete(instance)
      return gone.length > 0
    },
  }
}

interface Kept {
  readonly report: Promise<LedgerReport>
  readonly beganMs: number
  endMs: number
}

/** Shares a report between all callers until a new one may be counted. */
function shareReports(nowMs: () => number, count: () => Promise<LedgerReport>) {
  let kept: Kept | null = null
  const forget = (): void => {
    kept = null
  }
  const begin = async (): Promise<LedgerReport> => {
    const beganMs = nowMs()
    // A comparison needs all shards.
    const own: Kept = { report: answerWhole(count), beganMs, endMs: Infinity }
    kept = own
    try {
      const report = await own.report
      own.endMs = nowMs() + Math.max(FRESH_MS, (nowMs() - beganMs) / SHARE)
      return report
    } catch (error) {
      if (kept === own) kept = null
      throw error
    }
  }
  return {
    get: (): Promise<LedgerReport> => {
      // If the clock was set back, the report lies in the future.
      const isFresh = kept !== null && nowMs() >= kept.beganMs && nowMs() < kept.endMs
      return isFresh && kept !== null ? kept.report : begin()
    },
    forget,
  }
}

/** Messages by the time at which they were received, of a day at least, whatever the clock is set to meanwhile. */
function createSlots() {
  const slots = new Map<number, number>()
  return {
    list: () => [...slots],
    add: (receivedAtMs: number, messages: number): void => {
      if (messages === 0) return
      const slot = Math.floor(receivedAtMs / SLOT_MS)
      const before = slots.get(slot)
      slots.set(slot, (before ?? 0) + messages)
      if (before !== undefined || slots.size <= MOST_SLOTS) return
      const [first] = slots.keys()
      if (first !== undefined) slots.delete(first)
    },
  }
}

type Expected = Omit<LedgerReport, 'stored' | 'deadLetters'>

/** @param nowMs 0 when nothing can be compared */
function sumUp(all: readonly Counts[], nowMs: number): Expected {
  const since = Math.max(nowMs - LONGEST_MS, ...all.map((one) => one.sinceMs))
  const from = Math.ceil(since / SLOT_MS)
  const last = Math.min(nowMs, ...all.map((one) => one.untilMs))
  const until = Math.max(from, Math.floor(last / SLOT_MS))
  const within = all.flatMap(({ slots }) => slots).filter(([slot]) => slot >= from && slot < until)
  return {
    sinceMs: from * SLOT_MS,
    untilMs: until * SLOT_MS,
    acknowledged: within.reduce((sum, [, messages]) => sum + messages, 0),
    waiting: all.reduce((sum, one) => sum + one.waiting, 0),
  }
}

/** Counts what ClickHouse has of the compared span. */
async function withStored(store: LedgerDeps['store'], expected: Expected): Promise<LedgerReport> {
  const { sinceMs: from_ms, untilMs: to_ms } = expected
  if (from_ms === to_ms) return { ...expected, stored: 0, deadLetters: 0 }
  const [row] = await store.query(storedSql, { from_ms, to_ms })
  return { ...expected, stored: row?.stored ?? 0, deadLetters: row?.dead ?? 0 }
}
