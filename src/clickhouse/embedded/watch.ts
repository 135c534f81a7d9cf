import { type Agent, get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Engine } from './process.js'

export interface WatchOptions {
  /** The agent that connects to the engine. */
  readonly agent: Agent
  readonly username: string
  readonly password: string
  /** The pause between two requests. */
  readonly everyMs: number
  /** The longest time for one answer. */
  readonly answerMs: number
  /** Consecutive requests without an answer after which the engine counts as hung. */
  readonly misses: number
  /** Ends the watch. */
  readonly signal: AbortSignal
}

/**
 * Half a minute of silence: a busy engine answers within a second, and a restart costs no more than after a crash.
 */
export const PATIENCE = { everyMs: 5_000, answerMs: 5_000, misses: 3 } as const

/**
 * Polls an engine while it runs; any HTTP answer counts.
 *
 * @returns true if it runs and does not answer, false if it has ended or the watch has
 */
export async function isHung(
  engine: Pick<Engine, 'hasExited' | 'exited'>,
  options: WatchOptions,
): Promise<boolean> {
  const { everyMs, misses, signal } = options
  const isOver = (): boolean => engine.hasExited || signal.aborted
  // The first request's connection is opened before others can use up the engine's connections. One
  // answer resets the count, so a pause of this process does no harm.
  for (let missed = 0; ;) {
    missed = (await answers(options)) ? 0 : missed + 1
    if (isOver()) return false
    if (missed === misses) return true
    const pause = sleep(everyMs, undefined, { ref: false, signal }).catch(() => {})
    await Promise.race([pause, engine.exited])
    if (isOver()) return false
  }
}

/** Uses `node:http`, which the client loads anyway; `fetch` would be loaded for this alone. */
const answers = ({ agent, username, password, answerMs, signal }: WatchOptions): Promise<boolean> =>
  new Promise((resolve) => {
    const auth = `${username}:${password}`
    const request = get({ agent, path: '/?query=SELECT%201', auth, signal }, (reply) => {
      reply.on('error', () => undefined)
      reply.once('close', () => resolve(reply.complete))
      reply.resume()
    })
    // Not AbortSignal.any with AbortSignal.timeout: Node 20 may collect the timeout as garbage before it fires.
    const timer = setTimeout(() => request.destroy(), answerMs)
    request.once('error', () => resolve(false)).once('close', () => clearTimeout(timer))
  })
