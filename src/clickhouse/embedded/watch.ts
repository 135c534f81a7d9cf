import { get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Engine } from './process.js'

export interface WatchOptions {
  /** of the engine's HTTP interface */
  readonly url: string
  readonly username: string
  readonly password: string
  /** between two questions */
  readonly everyMs: number
  /** for one answer */
  readonly answerMs: number
  /** questions in a row without an answer, after which the engine counts as hung */
  readonly misses: number
}

/**
 * Half a minute of silence: a busy engine answers within a second, and one that is ended needs no longer to
 * come back than one that was killed.
 */
export const PATIENCE = { everyMs: 1_000, answerMs: 5_000, misses: 5 } as const

/**
 * Asks an engine for as long as it runs whether it answers; whatever it says will do.
 *
 * @returns true when it runs and does not answer any more, false when it has ended
 */
export async function isHung(engine: Engine, options: WatchOptions): Promise<boolean> {
  // in a row: after a time in which this process stood still too, the next answer counts
  for (let missed = 0; missed < options.misses;) {
    await Promise.race([sleep(options.everyMs, undefined, { ref: false }), engine.exited])
    if (engine.hasExited) return false
    missed = (await answers(options)) ? 0 : missed + 1
  }
  return !engine.hasExited
}

/** By the module that the client uses too: `fetch` would be loaded for this alone. */
const answers = ({ url, username, password, answerMs }: WatchOptions): Promise<boolean> =>
  new Promise((resolve) => {
    const options = {
      auth: `${username}:${password}`,
      signal: AbortSignal.timeout(answerMs),
    }
    get(`${url}/?query=SELECT%201`, options, (reply) => {
      reply.on('error', () => undefined)
      reply.once('close', () => resolve(reply.complete))
      reply.resume()
    }).once('error', () => resolve(false))
  })
