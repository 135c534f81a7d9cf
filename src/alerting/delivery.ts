/*
 * Sends the notices of transitions. The instance that evaluates does it. A channel gets its notices one after the other, so
 * that none overtakes another. What fails is tried again for a day, later and later; what a receiver refuses is not. Every
 * attempt is recorded. A notice that was sent and not recorded is sent again, with the same identity.
 */

import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import type { Store } from '../clickhouse/client.js'
import { statement } from '../clickhouse/statement.js'
import { backoffMs } from '../lib/backoff.js'
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../model/time.js'
import type { Log } from '../telemetry/log.js'
import type { Channels } from './channel.js'
import { parseTransition, type LoggedTransition } from './log.js'
import { isNews } from './machine.js'
import type { Notice } from './notice.js'
import type { Attempt, Send } from './send.js'

/** How a notice stands. */
export interface Delivery {
  readonly noticeId: string
  readonly attempts: number
  readonly atMs: number
  readonly outcome: string
  readonly status: number
  readonly error: string
}

interface DeliveryRow {
  readonly notice_id: string
  readonly attempts: number
  readonly at_ms: number
  readonly outcome: string
  readonly status: number
  readonly error: string
}

const unsentSql = statement<{ readonly limit: number }, { readonly doc: string }>('alert_unsent')
const deliveriesSql = statement<{ readonly ids: readonly string[] }, DeliveryRow>(
  'alert_deliveries_of',
)

const MAX_WAITING = 10_000
const IDS_AT_ONCE = 1_000
const TRIES_FOR_MS = DAY_MS
const BACKOFF = { baseMs: SECOND_MS, maxMs: 15 * MINUTE_MS }

/** The notices that a transition makes. */
export const noticesOf = (transition: LoggedTransition): readonly Notice[] =>
  !isNews(transition) || (transition.to === 'resolved' && transition.tellsResolved === false)
    ? []
    : (transition.channels ?? []).map((channelId) => ({
        id: createHash('sha256').update(`${transition.id} ${channelId}`).digest('hex').slice(0, 32),
        channelId,
        transition,
      }))

export interface DeliveryDeps {
  readonly store: Pick<Store, 'query' | 'insertRows'>
  readonly channels: Pick<Channels, 'find' | 'targetOf'>
  readonly send: Send
  readonly log: Log
}

export async function deliveriesOf(
  store: Pick<Store, 'query'>,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Delivery>> {
  const found = new Map<string, Delivery>()
  for (let from = 0; from < ids.length; from += IDS_AT_ONCE) {
    const some = ids.slice(from, from + IDS_AT_ONCE)
    for (const row of await store.query(deliveriesSql, { ids: some })) {
      const { notice_id: noticeId, at_ms: atMs, ...rest } = row
      found.set(noticeId, { noticeId, atMs, ...rest })
    }
  }
  return found
}

export class Deliveries {
  readonly #deps: DeliveryDeps
  readonly #signal: AbortSignal
  readonly #lanes = new Map<string, Notice[]>()
  readonly #known = new Set<string>()

  /** @param signal ends it */
  constructor(deps: DeliveryDeps, signal: AbortSignal) {
    this.#deps = deps
    this.#signal = signal
  }

  get waiting(): number {
    return [...this.#lanes.values()].reduce((sum, lane) => sum + lane.length, 0)
  }

  /** Takes up what an earlier instance did not send. */
  async resume(): Promise<void> {
    const { store } = this.#deps
    const rows = await store.query(unsentSql, { limit: MAX_WAITING })
    const notices = rows.flatMap(({ doc }) => parseTransition(doc)).flatMap(noticesOf)
    const done = await deliveriesOf(
      store,
      notices.map(({ id }) => id),
    )
    this.#enqueue(notices.filter(({ id }) => (done.get(id)?.outcome ?? 'failed') === 'failed'))
  }

  add(transitions: readonly LoggedTransition[]): void {
    this.#enqueue(transitions.flatMap(noticesOf))
  }

  #enqueue(notices: readonly Notice[]): void {
    for (const notice of notices) {
      if (this.#known.has(notice.id)) continue
      const lane = this.#lanes.get(notice.channelId)
      if ((lane?.length ?? 0) >= MAX_WAITING) {
        this.#deps.log.warn({ channel: notice.channelId }, 'too many notices wait; one is left out')
        continue
      }
      this.#known.add(notice.id)
      if (lane !== undefined) {
        lane.push(notice)
        continue
      }
      const begun = [notice]
      this.#lanes.set(notice.channelId, begun)
      void this.#drain(notice.channelId, begun)
    }
  }

  async #drain(channelId: string, lane: Notice[]): Promise<void> {
    for (;;) {
      const [notice] = lane
      if (notice === undefined || this.#signal.aborted) break
      await this.#deliver(notice)
      this.#known.delete(notice.id)
      lane.shift()
    }
    this.#lanes.delete(channelId)
  }

  async #deliver(notice: Notice): Promise<void> {
    const untilMs = notice.transition.atMs + TRIES_FOR_MS
    for (let tries = 1; !this.#signal.aborted; tries++) {
      const attempt = await this.#attempt(notice)
      const isLast = attempt.outcome !== 'failed' || Date.now() > untilMs
      const told: Attempt =
        isLast && attempt.outcome === 'failed' ? { ...attempt, outcome: 'refused' } : attempt
      await this.#record(notice, tries, told)
      if (isLast) return
      await sleep(backoffMs(tries, BACKOFF), undefined, { signal: this.#signal, ref: false }).catch(
        () => undefined,
      )
    }
  }

  async #attempt(notice: Notice): Promise<Attempt> {
    const { channels, send } = this.#deps
    const channel = channels.find(notice.channelId)
    const refused = (error: string): Attempt => ({
      outcome: 'refused',
      status: null,
      latencyMs: 0,
      error,
    })
    if (channel === null) return refused('the channel was deleted')
    if (!channel.enabled) return refused('the channel is disabled')
    const target = channels.targetOf(channel)
    if (target === null) return refused('the secret of the channel has to be entered anew')
    return await send(target, notice)
  }

  /** An attempt that cannot be recorded is only logged: the notice may be sent again after a restart. */
  async #record(notice: Notice, attempt: number, told: Attempt): Promise<void> {
    const { store, log } = this.#deps
    const row = {
      notice_id: notice.id,
      attempt,
      at: new Date().toISOString(),
      channel_id: notice.channelId,
      outcome: told.outcome,
      status: told.status ?? 0,
      latency_ms: told.latencyMs,
      error: told.error ?? '',
    }
    await store.insertRows('alert_deliveries', [row]).catch((error: unknown) => {
      log.warn({ err: error, notice: notice.id }, 'an attempt to send a notice was not recorded')
    })
  }
}
