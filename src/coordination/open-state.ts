import type { Config } from '../config.js'
import type { Log } from '../telemetry/log.js'
import { createInProcessState } from './memory-state.js'
import { createRedisState } from './redis-state.js'
import type { State } from './state.js'

/**
 * Opens the shared state: Redis where REDIS_URL is set, else the memory of this process.
 *
 * @param instanceId of the data directory; null for a command without one
 * @throws Error naming the setting when Redis does not answer
 */
export async function openState(
  { redisUrl, redisPrefix, clickhouseUrl }: Config,
  instanceId: string | null,
  log: Log,
): Promise<State> {
  const warn = (error: unknown): void => log.warn({ err: error }, 'the shared state fails')
  if (redisUrl === null) return createInProcessState({ onError: warn })
  // Failures during the start are reported by the error that ends the start.
  const failures: unknown[] = []
  let isStarting = true
  const onError = (error: unknown): void => {
    if (isStarting) failures.push(error)
    else warn(error)
  }
  // A cache of one embedded database must not serve an instance with another database.
  const own = clickhouseUrl === null && instanceId !== null ? `${instanceId}:` : ''
  const state = await createRedisState({ url: redisUrl, keyPrefix: redisPrefix + own, onError })
  try {
    await state.ping()
    // Redis refuses a database number that it does not have, and the client would continue with database 0.
    if (failures.length > 0) throw failures[0]
  } catch (cause) {
    await state.close()
    const { host } = new URL(redisUrl)
    const first = failures[0] ?? cause
    const reason = first instanceof Error ? first.message : String(first)
    throw new Error(`Redis at ${host} can't be used: ${reason}; check REDIS_URL`, { cause })
  }
  isStarting = false
  let isDown = false
  state.onStatus((status) => {
    if (isDown && status === 'ok') log.info({}, 'Redis answers again')
    isDown = status !== 'ok'
  })
  return state
}

/** @returns whether the state answers, at each call */
export function watchState(state: Pick<State, 'onStatus'>): () => boolean {
  let isUp = true
  state.onStatus((status) => {
    isUp = status === 'ok'
  })
  return () => isUp
}
