import { setTimeout as sleep } from 'node:timers/promises'
import { FORGOTTEN_MS, type Promptness } from './promptness.js'

export const CHECKS = ['clickhouse', 'state', 'spool', 'workers'] as const
export type CheckName = (typeof CHECKS)[number]
type Status = 'ok' | 'degraded' | 'down'

export interface Health {
  readonly status: Status
  readonly checks: Readonly<Record<CheckName, { readonly status: Status }>>
}

const STEP_MS = 60
const LIMIT_MS = 90_000

/**
 * Asks a service for its health.
 *
 * @param promptness by whom the time is judged that it takes; null: by nobody
 * @returns null when nobody listens or the connection ends
 * @throws Error when it does not answer in time, or answers what is no health
 */
export async function askHealth(
  api: string,
  promptness: Promptness | null = null,
): Promise<Health | null> {
  const startedMs = performance.now()
  try {
    const reply = await fetch(`${api}/api/monitoring/health`, {
      signal: AbortSignal.timeout(FORGOTTEN_MS),
    })
    const health = (await reply.json()) as Health // its contract, looked at next
    const late = promptness?.judge('health', startedMs) ?? null
    if (late !== null) throw new Error(`health ${late}: ${JSON.stringify(health)}`)
    if (health.checks?.spool === undefined || (reply.status === 503) !== (health.status === 'down'))
      throw new Error(`health answered ${reply.status} ${JSON.stringify(health)}`)
    return health
  } catch (error) {
    if (error instanceof TypeError) return null
    throw error
  }
}

/** Waits for a health of a kind. @throws Error with the last one when it does not come */
export async function untilHealth(
  api: () => string,
  isMeant: (health: Health) => boolean,
  limitMs = LIMIT_MS,
): Promise<void> {
  let last: Health | null = null
  for (const until = Date.now() + limitMs; Date.now() < until; await sleep(STEP_MS)) {
    last = await askHealth(api())
    if (last !== null && isMeant(last)) return
  }
  throw new Error(`health stays ${JSON.stringify(last)}`)
}

export const isWell = (health: Health): boolean => health.status === 'ok'

/**
 * Watches that a fault is told for as long as it lasts: once it was seen, no answer may call the thing
 * well before it is healed.
 *
 * @throws Error when the fault is never told, or is denied
 */
export async function whileTold(
  api: () => string,
  check: CheckName,
  work: () => Promise<void>,
): Promise<void> {
  await untilHealth(api, (health) => health.checks[check].status !== 'ok')
  const over = new AbortController()
  const watching = (async () => {
    for (; !over.signal.aborted; await sleep(STEP_MS)) {
      const health = await askHealth(api())
      if (
        !over.signal.aborted &&
        health !== null &&
        (isWell(health) || health.checks[check].status === 'ok')
      )
        throw new Error(`health calls ${check} well while it is not: ${JSON.stringify(health)}`)
    }
  })()
  // told when the work is over, and not before: nobody listens until then
  const watched = watching.then(
    () => null,
    (error: unknown) => error,
  )
  try {
    await work()
  } finally {
    over.abort()
  }
  const error = await watched
  if (error !== null) throw error
}
