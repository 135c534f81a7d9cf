import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import type { Store } from './client.js'
import { statement } from './statement.js'

/**
 * What must not be done by two at once is done by one after the other, and ClickHouse itself keeps whose turn it is:
 * by a query that sleeps under an id which no second query may have. It ends with its connection, so that a
 * process that died has no turn any more, and one that stands still keeps its own.
 */
export interface Turns {
  /** Sleeps under the id `turn`, at most `TURN_MS`. @throws when somebody else does, or the connection is cut */
  sleep(turn: string, owner: string, signal: AbortSignal): Promise<void>
  holders(turn: string, owner: string): Promise<Holders>
}

interface Holders {
  /** 1 when it is the owner's turn */
  readonly own: number
  /** behind one address may be several servers */
  readonly others: number
}

/** @throws when the turn was lost: what is begun then may meet another one's work */
export type CheckTurn = () => void

const turnSql = statement<{ readonly steps: number }, { readonly slept: number }>('turn')
const holdersSql = statement<{ readonly turn: string; readonly owner: string }, Holders>(
  'turn_holders',
)
const clusterHoldersSql = statement<
  { readonly cluster: string; readonly turn: string; readonly owner: string },
  Holders
>('cluster_turn_holders')

/** less than the client and many a proxy grant a connection that is silent */
const TURN_MS = 540_000
/** of `turn.sql` */
const STEP_MS = 200
const WAIT_MS = 600_000
const RETRY_MS = 200
/** until the server shows that it sleeps, on a busy machine */
const BEGIN_MS = 30_000
const POLL_MS = 20

/** @param cluster when given, one of all servers of this cluster has the turn */
export const turnsOf = (store: Pick<Store, 'query'>, cluster?: string): Turns => ({
  sleep: async (turn, owner, signal) => {
    const settings = { log_comment: owner }
    const options = { signal, settings, queryId: turn, timeoutMs: TURN_MS + BEGIN_MS }
    await store.query(turnSql, { steps: TURN_MS / STEP_MS }, options)
  },
  holders: async (turn, owner) => {
    const [row] =
      cluster === undefined
        ? await store.query(holdersSql, { turn, owner })
        : await store.query(clusterHoldersSql, { cluster, turn, owner })
    return row ?? { own: 0, others: 0 }
  },
})

/**
 * Waits for the turn and works.
 *
 * @param work calls what it is given before each of its steps
 */
export async function inTurn<T>(
  turns: Turns,
  turn: string,
  work: (check: CheckTurn) => Promise<T>,
): Promise<T> {
  for (const untilMs = performance.now() + WAIT_MS; performance.now() < untilMs;) {
    const held = await take(turns, turn)
    if (held !== null)
      try {
        return await work(held.check)
      } finally {
        await held.giveUp()
      }
    // two that asked different servers of a cluster meet again at different times
    await sleep(RETRY_MS * (0.5 + Math.random()))
  }
  throw new Error(`another instance has been at it for ${WAIT_MS / 1000} s (${turn}): start again`)
}

interface Held {
  readonly check: CheckTurn
  readonly giveUp: () => Promise<void>
}

/** @returns null when it is another one's turn */
async function take(turns: Turns, turn: string): Promise<Held | null> {
  const owner = randomUUID()
  const end = new AbortController()
  const over: { reason: unknown; is: boolean } = { reason: null, is: false }
  const sleeping = turns
    .sleep(turn, owner, end.signal)
    .catch((error: unknown) => (over.reason = error))
    .finally(() => (over.is = true))
  const giveUp = async (): Promise<void> => {
    end.abort()
    await sleeping
  }
  const check = (): void => {
    if (!over.is) return
    const why = over.reason instanceof Error ? over.reason.message : 'it took too long'
    throw new Error(`the turn (${turn}) was lost before its work was done: ${why}; start again`)
  }
  const isOurs = async (): Promise<boolean> => {
    for (const untilMs = performance.now() + BEGIN_MS; ; await sleep(POLL_MS)) {
      const { own, others } = await turns.holders(turn, owner)
      if (isTaken(over.reason)) return false
      if (over.is) throw over.reason
      if (own === 1) return others === 0
      if (performance.now() > untilMs) throw new Error(`bug: no server shows the turn (${turn})`)
    }
  }
  try {
    if (await isOurs()) return { check, giveUp }
  } catch (error) {
    await giveUp()
    throw error
  }
  await giveUp()
  return null
}

/** QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING */
const isTaken = (reason: unknown): boolean =>
  reason instanceof Error && 'code' in reason && reason.code === 216
