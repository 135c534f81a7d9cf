import { setTimeout as sleep } from 'node:timers/promises'
import type { Installation } from './installation.js'
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
const LOG_CHARS = 4_000

/**
 * Requests the health of a service.
 *
 * @param promptness checks the duration; null for no check
 * @returns null when the port is closed or the connection ends
 * @throws Error for a late reply, and for a reply of another form
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
    const health = (await reply.json()) as Health // its contract, checked next
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

/** Waits for a health that matches. @throws Error with the last one after a time limit */
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

/** Waits until a service is well. @throws Error with its log at once when it has ended by itself, and after a time limit */
export async function untilWell(
  installation: Pick<Installation, 'api' | 'service' | 'refuseEnd'>,
  limitMs?: number,
): Promise<void> {
  const api = (): string => {
    installation.refuseEnd()
    return installation.api
  }
  await untilHealth(api, isWell, limitMs).catch((cause: unknown) => {
    const log = installation.service.log().slice(-LOG_CHARS)
    throw new Error(`${String(cause)}; its log ends with ${log}`, { cause })
  })
}

/**
 * Checks that health reports a fault for as long as it lasts: after the first report no reply may be healthy before
 * the fault ends.
 *
 * @throws Error when the fault is never reported, or a reply is healthy too early
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
  // The error is thrown after the work, because nothing awaits the promise before.
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
