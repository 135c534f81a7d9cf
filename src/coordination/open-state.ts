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
  const onError = (error: unknown): void => log.warn({ err: error }, 'state')
  if (redisUrl === null) return createInProcessState({ onError })
  // What is cached of an embedded database serves no instance with another one.
  const own = clickhouseUrl === null && instanceId !== null ? `${instanceId}:` : ''
  const state = await createRedisState({ url: redisUrl, keyPrefix: redisPrefix + own, onError })
  try {
    await state.ping()
  } catch (cause) {
    await state.close()
    const { host } = new URL(redisUrl)
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`Redis at ${host} can't be used: ${reason}; check REDIS_URL`, { cause })
  }
  return state
}

/** @returns tells whether the state answers */
export function watchState(state: Pick<State, 'onStatus'>): () => boolean {
  let isUp = true
  state.onStatus((status) => {
    isUp = status === 'ok'
  })
  return () => isUp
}
