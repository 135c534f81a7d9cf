import { test } from 'tap'

import { createOnce, forgetStored, type SeenKeys } from '../../../../src/ingest/once.js'
import { webhookRoute, type WebhookServices } from '../../../../src/ingest/webhook/webhook.js'
import { HeaderBag, Request } from '../../../../src/http/request.js'
import type { Reply } from '../../../../src/http/reply.js'
import { AppError } from '../../../../src/model/errors.js'
import type { CanonicalEvent } from '../../../../src/model/event.js'
import { stateUnavailable } from '../../../../src/coordination/state.js'
import { createInProcessState } from '../../../../src/coordination/memory-state.js'

const log = { info() {}, warn() {}, error() {} }
const SIGNATURE = 'a'.repeat(64)

function toRequest(): Request {
  const headers = new HeaderBag()
  headers.add('x-scm-token', SIGNATURE)
  return new Request({
    method: 'POST',
    path: '/webhooks/scm',
    queryText: '',
    headers,
    params: {},
    ip: () => '127.0.0.1',
    requestId: 'r',
    log,
    signal: () => new AbortController().signal,
    isOver: () => false,
  })
}

const event = (dedupKey: string): CanonicalEvent => ({
  timestampMs: 0,
  source: 'scm.a/b',
  type: 'event',
  severity: 'INFO',
  message: dedupKey,
  host: '',
  environment: 'production',
  traceId: '',
  spanId: '',
  summary: '',
  tags: null,
  dedupKey,
  template: '',
  exception: '',
})

function receiver(
  keys: readonly string[],
  store: WebhookServices['store'],
  seen: SeenKeys = createInProcessState({ onError: () => undefined }),
  storedKeys: WebhookServices['storedKeys'] = async () => new Set(),
) {
  const route = webhookRoute({
    verify: async () => true,
    onWrongSignature: () => undefined,
    parse: () => ({
      kind: 'events',
      source: 'scm.a/b',
      connector: 'gitlab',
      events: keys.map(event),
    }),
    hasRoom: () => true,
    once: createOnce(seen, createInProcessState({ onError: () => undefined })),
    storedKeys,
    store,
  })
  return async (): Promise<Reply> => {
    const request = toRequest()
    const admission = await route.admit(request)
    if (admission.kind !== 'admitted') throw new Error(admission.kind)
    return await admission.handle(request)
  }
}

void test('a delivery that could not be stored is accepted again', async (t) => {
  let tries = 0
  const deliver = receiver(['one'], () => {
    tries++
    if (tries === 1) return Promise.reject(new AppError('dependency_unavailable', 'spool'))
    return Promise.resolve(1)
  })
  await t.rejects(deliver(), { code: 'dependency_unavailable' })
  t.match(await deliver(), { status: 202, json: { status: 'accepted', events: 1 } })
  t.match(await deliver(), { status: 202, json: { status: 'duplicate', events: 0 } })
})

void test('a repeated delivery waits while the first is being stored, and is stored when that fails', async (t) => {
  const pending: { readonly reject: (cause: Error) => void }[] = []
  const deliver = receiver(['one'], () =>
    pending.length === 0
      ? new Promise<number>((_, reject) => pending.push({ reject }))
      : Promise.resolve(1),
  )
  const first = deliver()
  const copy = deliver()
  await new Promise((resolve) => setTimeout(resolve, 20))
  pending[0]?.reject(new AppError('dependency_unavailable', 'spool'))
  await t.rejects(first, { code: 'dependency_unavailable' })
  t.match(await copy, { json: { status: 'accepted', events: 1 } })
})

void test('an ignored delivery is accepted after its source is enabled', async (t) => {
  let isOn = false
  const deliver = receiver(['one'], (events) => Promise.resolve(isOn ? events.length : 0))
  t.match(await deliver(), { json: { status: 'ignored', events: 0 } })
  isOn = true
  t.match(await deliver(), { json: { status: 'accepted', events: 1 } })
  t.match(await deliver(), { json: { status: 'duplicate', events: 0 } })
})

void test('a deleted delivery is accepted again, once', async (t) => {
  const seen = createInProcessState({ onError: () => undefined })
  const deliver = receiver(['one', 'two'], async (events) => events.length, seen)
  const accepted = { json: { status: 'accepted', events: 2 } }
  const duplicate = { json: { status: 'duplicate', events: 0 } }
  t.match(await deliver(), accepted)
  for (const sources of [['scm.a/b'], ['other', 'scm.a/b'], null, ['scm.a/b']]) {
    await forgetStored(seen, ['other'])
    t.match(await deliver(), duplicate, 'of another source')
    await forgetStored(seen, sources)
    const replies = await Promise.all([deliver(), deliver(), deliver()])
    const events = replies.map(({ json }) => (json as { events: number }).events)
    t.equal(
      events.reduce((a, b) => a + b),
      2,
      'each once, whoever brought it',
    )
    t.match(await deliver(), duplicate)
  }
})

void test('an event that is twice in one delivery is stored once', async (t) => {
  const stored: number[] = []
  const deliver = receiver(['one', 'two', 'one'], (events) => {
    stored.push(events.length)
    return Promise.resolve(events.length)
  })
  t.match(await deliver(), { json: { status: 'accepted', events: 2 } })
  t.same(stored, [2])
})

void test('what the shared state has lost is found in ClickHouse, whichever instance is asked', async (t) => {
  const stored = new Set<string>()
  const store: WebhookServices['store'] = async (events) => {
    for (const { dedupKey } of events) stored.add(dedupKey)
    return events.length
  }
  const found: WebhookServices['storedKeys'] = async (source, keys) =>
    source === 'scm.a/b' ? new Set(keys.filter((key) => stored.has(key))) : new Set()
  const empty = (): SeenKeys => createInProcessState({ onError: () => undefined })
  const accepted = { json: { status: 'accepted', events: 1 } }
  const duplicate = { json: { status: 'duplicate', events: 0 } }
  t.match(await receiver(['one'], store, empty(), found)(), accepted)
  const other = receiver(['one'], store, empty(), found)
  t.match(await other(), duplicate, 'the state was emptied')
  t.match(await other(), duplicate)
  t.match(await receiver(['one', 'two'], store, empty(), found)(), accepted, 'only what is new')

  const down = async (): Promise<never> => {
    throw stateUnavailable('redis does not answer')
  }
  const away: SeenKeys = { get: down, set: down, setIfAbsent: down, delete: down }
  t.match(await receiver(['two'], store, away, found)(), duplicate, 'it does not answer')
  const alone = receiver(['three'], store, away, found)
  t.match(await alone(), accepted)
  t.match(await alone(), duplicate)
  const deaf = receiver(['three'], store, empty(), () => Promise.reject(new Error('away')))
  t.match(await deaf(), accepted, 'a repeat is better than a loss')
})
