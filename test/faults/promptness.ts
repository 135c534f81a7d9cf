import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { MINUTE_MS } from '../../src/model/time.js'

/** The pause between two requests to the control. */
const PAUSE_MS = 20
/** A request to the control with its pause, on an idle machine. */
const CYCLE_MS = PAUSE_MS + 3
/** Lags are kept for longer than any request takes. */
const KEPT_MS = 180_000
/** The tolerance of a reply beyond its deadline and the lag of the machine. */
const ALLOWANCE_MS = 1_000
/** A request has arrived by then, apart from the lag of the machine. */
const SEEN_MS = 2_000

/** The documented deadlines, which hold during every fault. */
export const PROMISED_MS = { answer: 30_000, clearing: MINUTE_MS, health: 2_000 } as const
export type Promised = keyof typeof PROMISED_MS

/** A request without a reply by then is lost. */
export const FORGOTTEN_MS = 120_000

/** A request to the control that took too long. */
export interface Lag {
  readonly fromMs: number
  readonly endMs: number
  readonly lagMs: number
}

interface Span {
  readonly fromMs: number
  readonly toMs: number
}

/** The sum of the machine's lags in an interval. @param lags in order */
export function lostIn(lags: readonly Lag[], { fromMs, toMs }: Span): number {
  let lostMs = 0
  for (let i = lags.length - 1; i >= 0; i--) {
    const lag = lags[i]
    if (lag === undefined || lag.endMs <= fromMs) break
    const sharedMs = Math.min(lag.endMs, toMs) - Math.max(lag.fromMs, fromMs)
    lostMs += lag.lagMs * Math.max(0, sharedMs / (lag.endMs - lag.fromMs))
  }
  return lostMs
}

/**
 * The delay of a reply by the machine: lags until the request has arrived, and lags since its deadline. In between the
 * deadline's timer runs on, however busy the machine is.
 */
export const delaying = (kind: Promised, { fromMs, toMs }: Span): readonly Span[] => [
  { fromMs, toMs: Math.min(toMs, fromMs + SEEN_MS) },
  { fromMs: Math.min(toMs, fromMs + Math.max(SEEN_MS, PROMISED_MS[kind])), toMs },
]

/** @returns a description of a late reply; null for a reply in time */
export function judge(kind: Promised, tookMs: number, lostMs: number): string | null {
  if (tookMs - lostMs <= PROMISED_MS[kind] + ALLOWANCE_MS) return null
  const promised = `${PROMISED_MS[kind] / 1000} s are promised`
  return `answered after ${inSeconds(tookMs)}, ${inSeconds(lostMs)} of them lag of the machine; ${promised}`
}

const inSeconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`

/**
 * Separates late replies of the service from the lag of a busy machine. A control server that only replies is polled
 * from the same process, and its lag is deducted.
 */
export class Promptness {
  readonly #end: () => Promise<void>
  readonly #lags: Lag[] = []
  readonly #slowest = new Map<Promised, { readonly tookMs: number; readonly lostMs: number }>()
  /** The start of the pending request to the control. */
  #sinceMs = performance.now()

  private constructor(end: () => Promise<void>) {
    this.#end = end
  }

  static async start(): Promise<Promptness> {
    const child = fork(new URL('control.js', import.meta.url), {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    const [port] = (await once(child, 'message')) as [number]
    const stop = new AbortController()
    const promptness: Promptness = new Promptness(async () => {
      stop.abort()
      await asking
      child.disconnect()
      await once(child, 'exit')
    })
    const asking = promptness.#ask(`http://127.0.0.1:${port}`, stop.signal)
    return promptness
  }

  async stop(): Promise<void> {
    await this.#end()
  }

  /** @returns a description of a reply that arrived late; null for a reply in time */
  judge(kind: Promised, startedMs: number): string | null {
    const nowMs = performance.now()
    const tookMs = nowMs - startedMs
    const lostMs = Math.min(tookMs, this.#delayOf(kind, { fromMs: startedMs, toMs: nowMs }))
    const slowest = this.#slowest.get(kind)
    if (slowest === undefined || tookMs - lostMs > slowest.tookMs - slowest.lostMs)
      this.#slowest.set(kind, { tookMs, lostMs })
    return judge(kind, tookMs, lostMs)
  }

  /** Describes the slowest replies so far. */
  summary(): string {
    const each = [...this.#slowest].map(
      ([kind, { tookMs, lostMs }]) =>
        `${kind} ${inSeconds(tookMs)}, ${inSeconds(lostMs)} of them lag of the machine`,
    )
    return `slowest of all so far: ${each.join('; ')}`
  }

  #delayOf(kind: Promised, span: Span): number {
    const running = lagOf(this.#sinceMs, span.toMs)
    return delaying(kind, span).reduce(
      (lostMs, part) => lostMs + lostIn(this.#lags, part) + lostIn([running], part),
      0,
    )
  }

  async #ask(url: string, stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      this.#sinceMs = performance.now()
      // An aborted request counts with its duration, too.
      await fetch(url).then(
        (reply) => reply.text(),
        () => undefined,
      )
      await sleep(PAUSE_MS)
      const endMs = performance.now()
      this.#lags.push(lagOf(this.#sinceMs, endMs))
      while ((this.#lags[0]?.endMs ?? endMs) < endMs - KEPT_MS) this.#lags.shift()
    }
  }
}

const lagOf = (fromMs: number, endMs: number): Lag => ({
  fromMs,
  endMs: Math.max(endMs, fromMs + 1),
  lagMs: Math.max(0, endMs - fromMs - CYCLE_MS),
})
