import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import type { HttpRequest, RequestHead } from '../../http/request.js'
import type { Reply } from '../../http/reply.js'
import type { HttpRoute } from '../../http/routes.js'
import { AppError } from '../../model/errors.js'
import type { CanonicalEvent } from '../../model/event.js'

const BODY_BYTES = 25 * 1024 * 1024
/** A delivery that is repeated within this time is a duplicate. */
const WINDOW_MS = 300_000
/** An instance that dies while it stores a delivery blocks repeats of it for at most this long. */
const STORING_MS = 20_000
const POLL_MS = 100
const STORING = 'storing'

type Delivery =
  | {
      readonly kind: 'events'
      readonly source: string
      readonly connector: string
      readonly events: readonly CanonicalEvent[]
    }
  | { readonly kind: 'ignored'; readonly objectKind: string }

/** The dedup keys of deliveries within the window, shared by all instances. */
export interface SeenKeys {
  get(key: string): Promise<string | null>
  set(key: string, value: string, ttlMs: number): Promise<void>
  setIfAbsent(key: string, value: string, ttlMs: number): Promise<boolean>
  delete(key: string): Promise<void>
}

export interface WebhookServices {
  /** Compares the signature in constant time. @returns false without a configured secret */
  readonly verify: (signature: string | undefined, body: Uint8Array) => Promise<boolean>
  /** Called for each delivery whose signature is missing or wrong. */
  readonly onWrongSignature: (head: RequestHead) => void
  /** @throws AppError invalid_payload */
  readonly parse: (body: Uint8Array) => Delivery
  readonly hasRoom: (bytes: number) => boolean
  readonly seen: SeenKeys
  /** The keys of this process, used while the shared state is not available. */
  readonly seenHere: SeenKeys
  /** Resolves when the events are durable. @returns the number of stored events, 0 for a disabled source */
  readonly store: (
    events: readonly CanonicalEvent[],
    source: { readonly name: string; readonly connector: string },
  ) => Promise<number>
}

function refused(head: RequestHead, { onWrongSignature }: WebhookServices): AppError {
  onWrongSignature(head)
  return new AppError('invalid_signature', 'Invalid webhook signature')
}

function admit(head: RequestHead, services: WebhookServices): void {
  if (!/^[0-9a-f]{64}$/.test(head.headers.first('x-scm-token') ?? '')) throw refused(head, services)
  const length = Number(head.headers.first('content-length') ?? 0)
  if (services.hasRoom(Math.min(length, BODY_BYTES))) return
  throw new AppError('overloaded', 'the service takes no more events right now', { retryAfterS: 1 })
}

async function receive(request: HttpRequest, services: WebhookServices): Promise<Reply> {
  const { body, headers } = request
  const isSigned = await services.verify(headers.first('x-scm-token'), body)
  if (!isSigned) throw refused(request, services)
  const delivery = services.parse(body)
  if (delivery.kind === 'ignored') return toReply('ignored', 0)
  const { source: name, connector } = delivery
  const { seen, claimed, storedValue } = await claim(name, delivery.events, services)
  if (claimed.length === 0) return toReply('duplicate', 0)
  // The sender repeats the delivery of events that were not stored.
  const release = async (): Promise<unknown> =>
    await Promise.allSettled(claimed.map((event) => seen.delete(keyOf(event))))
  try {
    const stored = await services.store(claimed, { name, connector })
    if (stored === 0) {
      await release()
      return toReply('ignored', 0)
    }
    await Promise.all(claimed.map((event) => seen.set(keyOf(event), storedValue, WINDOW_MS)))
    return toReply('accepted', stored)
  } catch (error) {
    await release()
    throw error
  }
}

const toReply = (status: 'accepted' | 'duplicate' | 'ignored', events: number): Reply => ({
  status: 202,
  json: { status, events },
})

const keyOf = (event: CanonicalEvent): string => `webhook:${event.dedupKey}`

interface Claim {
  readonly seen: SeenKeys
  /** Distinct events that no earlier delivery contained. */
  readonly claimed: readonly CanonicalEvent[]
  /** The value of their keys once they are stored. */
  readonly storedValue: string
}

async function claim(
  source: string,
  events: readonly CanonicalEvent[],
  { seen, seenHere }: WebhookServices,
): Promise<Claim> {
  const distinct = [...new Map(events.map((event) => [event.dedupKey, event])).values()]
  try {
    return await claimIn(seen, source, distinct)
  } catch (error) {
    if (error instanceof AppError && error.details['dependency'] !== 'state') throw error
    return await claimIn(seenHere, source, distinct)
  }
}

async function claimIn(
  seen: SeenKeys,
  source: string,
  events: readonly CanonicalEvent[],
): Promise<Claim> {
  const epochs = await Promise.all([EVERYTHING, source].map((name) => seen.get(epochKey(name))))
  const value = ['stored', ...epochs.map((epoch) => epoch ?? '')].join(' ').trimEnd()
  const mine = await Promise.all(events.map((event) => claimOne(seen, keyOf(event), value)))
  return { seen, claimed: events.filter((_, i) => mine[i] === true), storedValue: value }
}

/** Waits while another delivery of the same event is being stored, because this one counts if that one fails. */
async function claimOne(seen: SeenKeys, key: string, value: string): Promise<boolean> {
  const deadline = Date.now() + STORING_MS
  for (;;) {
    if (await seen.setIfAbsent(key, STORING, STORING_MS)) return true
    const found = await seen.get(key)
    if (found !== null && found !== STORING) {
      if (isOfNow(found, value)) return false
      // Only the first of the deliveries that find an outdated key may delete it, else it could delete a new key.
      if (await seen.setIfAbsent(`${key} ${found}`, 'gone', WINDOW_MS)) await seen.delete(key)
    }
    if (Date.now() >= deadline)
      throw new AppError('dependency_unavailable', 'the same delivery is still being stored', {
        details: { dependency: 'spool' },
        retryAfterS: 5,
      })
    if (found !== null) await sleep(POLL_MS)
  }
}

/** The epoch of all sources; no source has an empty name. */
const EVERYTHING = ''
const epochKey = (source: string): string => `webhook-epoch:${source}`

/**
 * Whether a key was stored since the last deletion. An epoch outlives all keys that were stored before it, so one that
 * has expired needs no comparison.
 */
function isOfNow(found: string, value: string): boolean {
  const before = found.split(' ')
  return value.split(' ').every((epoch, i) => epoch === '' || epoch === (before[i] ?? ''))
}

/**
 * Lets deliveries of these sources be accepted again, because their events are being deleted.
 *
 * @param sources null stands for all sources
 */
export async function forgetDeliveries(
  seen: Pick<SeenKeys, 'set'>,
  sources: readonly string[] | null,
): Promise<void> {
  const names = sources ?? [EVERYTHING]
  const lastingMs = WINDOW_MS + STORING_MS
  await Promise.all(names.map((name) => seen.set(epochKey(name), randomUUID(), lastingMs)))
}

/**
 * The receiver of source-control webhooks: it verifies the signature, maps the payload to events, and stores those
 * that no delivery contained within the window. The key of an event is first set to "storing", then to "stored" when
 * the event is durable, or deleted when it could not be stored. A deletion of sources begins a new epoch, which
 * invalidates the stored keys.
 */
export const webhookRoute = (services: WebhookServices): HttpRoute => ({
  id: 'scmWebhook',
  method: 'POST',
  path: '/webhooks/scm',
  bodyBytes: BODY_BYTES,
  isAuthenticatedByBody: true,
  admit: (head) => {
    admit(head, services)
    return { kind: 'admitted', handle: (request) => receive(request, services) }
  },
})
