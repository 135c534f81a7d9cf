import type { HttpRequest, RequestHead } from '../../http/request.js'
import type { Reply } from '../../http/reply.js'
import type { HttpRoute } from '../../http/routes.js'
import { AppError } from '../../model/errors.js'
import type { CanonicalEvent } from '../../model/event.js'
import type { Once } from '../once.js'
import { overloaded } from '../refusals.js'

const BODY_BYTES = 25 * 1024 * 1024

type Delivery =
  | {
      readonly kind: 'events'
      readonly source: string
      readonly connector: string
      readonly events: readonly CanonicalEvent[]
    }
  | { readonly kind: 'ignored'; readonly objectKind: string }

export interface WebhookServices {
  /** Compares the signature in constant time. @returns false without a configured secret */
  readonly verify: (signature: string | undefined, body: Uint8Array) => Promise<boolean>
  /** Called for each delivery whose signature is missing or wrong. */
  readonly onWrongSignature: (head: RequestHead) => void
  /** @throws AppError invalid_payload */
  readonly parse: (body: Uint8Array) => Delivery
  readonly hasRoom: (bytes: number) => boolean
  readonly once: Once
  /**
   * Finds which deduplication keys have events that were stored since a time.
   *
   * @throws when ClickHouse does not answer
   */
  readonly storedKeys: (
    source: string,
    keys: readonly string[],
    sinceMs: number,
  ) => Promise<ReadonlySet<string>>
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
  throw overloaded()
}

async function receive(request: HttpRequest, services: WebhookServices): Promise<Reply> {
  const { body, headers } = request
  const isSigned = await services.verify(headers.first('x-scm-token'), body)
  if (!isSigned) throw refused(request, services)
  const delivery = services.parse(body)
  if (delivery.kind === 'ignored') return toReply('ignored', 0)
  const { source: name, connector } = delivery
  const distinct = [...new Map(delivery.events.map((event) => [event.dedupKey, event])).values()]
  const claim = await services.once.claim(distinct.map(keyOf), name, async (keys, sinceMs) => {
    const asked = keys.map((key) => key.slice(KEY_PREFIX.length))
    // While ClickHouse does not answer, a delivery counts as new, because a repeat is better than a loss.
    const found = await services.storedKeys(name, asked, sinceMs).catch(() => new Set<string>())
    return new Set([...found].map((key) => KEY_PREFIX + key))
  })
  const claimed = distinct.filter((_, i) => claim.isNew[i] === true)
  if (claimed.length === 0) return toReply('duplicate', 0)
  try {
    const stored = await services.store(claimed, { name, connector })
    if (stored === 0) {
      // The sender repeats the delivery of events that were not stored.
      await claim.release()
      return toReply('ignored', 0)
    }
    await claim.stored()
    return toReply('accepted', stored)
  } catch (error) {
    await claim.release()
    throw error
  }
}

const toReply = (status: 'accepted' | 'duplicate' | 'ignored', events: number): Reply => ({
  status: 202,
  json: { status, events },
})

const KEY_PREFIX = 'webhook:'
const keyOf = (event: CanonicalEvent): string => KEY_PREFIX + event.dedupKey

/**
 * The receiver of source-control webhooks: it verifies the signature, maps the payload to events, and stores those
 * that no delivery contained within the window (`once.ts`).
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
