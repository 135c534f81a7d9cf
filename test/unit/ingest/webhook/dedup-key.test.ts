import {
  array,
  assert,
  constant,
  constantFrom,
  dictionary,
  json,
  jsonValue,
  nat,
  oneof,
  property,
  record,
  string,
  tuple,
  uint8Array,
} from 'fast-check'
import { test } from 'tap'
import { AppError } from '../../../../src/model/errors.js'
import { parseScmWebhook } from '../../../../src/ingest/webhook/webhook-events.js'
import { bodyOf, webhook, withField, withFields, type Payload } from '../../../support/webhooks.js'
import { DAY_MS } from '../../../../src/model/time.js'

const context = {
  nowMs: Date.UTC(2026, 10, 21, 9, 28, 19),
  environment: 'production',
  maxMessageBytes: 262_144,
}
const kinds = ['push', 'tag_push', 'issue', 'merge_request', 'pipeline', 'build', 'release']

function keysOf(payload: unknown, at = context): readonly string[] {
  const delivery = parseScmWebhook(bodyOf(payload), at)
  return delivery.kind === 'events' ? delivery.events.map(({ dedupKey }) => dedupKey) : []
}

/** Reorders the keys of every object in a JSON value. */
function shuffled(value: unknown, order: (a: string, b: string) => number): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => shuffled(item, order))
  if (typeof value !== 'object' || value === null) return value
  const sorted = Object.entries(value).sort(([a], [b]) => order(a, b))
  return Object.fromEntries(sorted.map(([key, item]) => [key, shuffled(item, order)]))
}

/** Lists every path of the payload through objects. */
function pathsOf(payload: object, prefix = ''): readonly string[] {
  return Object.entries(payload).flatMap(([key, value]: [string, unknown]) => {
    const nested = typeof value === 'object' && value !== null && !Array.isArray(value)
    return [`${prefix}${key}`, ...(nested ? pathsOf(value, `${prefix}${key}.`) : [])]
  })
}

void test('a delivery that is repeated later and elsewhere has the same keys', async (t) => {
  for (const kind of kinds) {
    const elsewhere = { nowMs: context.nowMs + 299_000, environment: 'dev', maxMessageBytes: 20 }
    t.strictSame(keysOf(webhook(kind), elsewhere), keysOf(webhook(kind)), kind)
  }
})

void test('keys do not depend on the order of fields', async (t) => {
  const reverse = (a: string, b: string): number => (a < b ? 1 : -1)
  const forward = (a: string, b: string): number => (a < b ? -1 : 1)
  for (const kind of kinds) {
    const payload = withField(webhook(kind), 'changes', {
      title: { previous: 'a', current: 'b' },
      10: { z: [1, { y: 2, x: 3 }] },
      9: null,
    })
    t.strictSame(keysOf(shuffled(payload, reverse)), keysOf(payload), kind)
    t.strictSame(keysOf(shuffled(payload, forward)), keysOf(payload), kind)
  }
})

void test('another project, object, state or time is another event', async (t) => {
  const differs = (kind: string, fields: Payload): void => {
    const keys = [...keysOf(webhook(kind)), ...keysOf(withFields(webhook(kind), fields))]
    t.equal(new Set(keys).size, keys.length, `${kind} ${JSON.stringify(fields)}`)
  }
  for (const kind of kinds) differs(kind, { 'project.path_with_namespace': 'plant/other' })
  differs('push', { ref: 'refs/heads/main' })
  differs('push', { after: 'abcdef' })
  differs('tag_push', { ref: 'refs/tags/v2.4.1' })
  differs('tag_push', { after: '0'.repeat(40) })
  for (const kind of ['issue', 'merge_request']) {
    differs(kind, { 'object_attributes.iid': 43 })
    differs(kind, { 'object_attributes.action': 'close', 'object_attributes.state': 'closed' })
    differs(kind, { 'object_attributes.updated_at': '2026-11-20T21:00:01Z' })
    differs(kind, { changes: { labels: { previous: [], current: [{ id: 1 }] } } })
  }
  differs('pipeline', { 'object_attributes.id': 88_121 })
  differs('pipeline', { 'object_attributes.status': 'success' })
  differs('pipeline', { 'object_attributes.finished_at': '2026-11-20 21:06:31 UTC' })
  differs('build', { build_id: 555_002 })
  differs('build', { build_status: 'success' })
  differs('build', { build_finished_at: 'some other time' })
  differs('release', { tag: 'v2.4.1' })
  differs('release', { action: 'update' })
  differs('release', { description: 'a release without times differs by its notes' })
})

void test('commits without an id differ by their index', async (t) => {
  const [first, second] = keysOf(withField(webhook('push'), 'commits', [{}, {}]))
  t.not(first, second)
})

void test('the kind is part of the key', async (t) => {
  const issue = withField(webhook('issue'), 'changes', {})
  t.notSame(keysOf(issue), keysOf(withField(issue, 'object_kind', 'merge_request')))
})

void test('one time in two forms is one event', async (t) => {
  const keysAt = (text: string): readonly string[] =>
    keysOf(withField(webhook('merge_request'), 'object_attributes.updated_at', text))
  t.strictSame(keysAt('2026-11-20 21:00:00 UTC'), keysAt('2026-11-20T22:00:00.000+01:00'))
})

void test('people and settings in a payload are not part of the key', async (t) => {
  for (const kind of kinds) {
    const other = withFields(webhook(kind), {
      'user.avatar_url': 'https://elsewhere/x.png',
      'project.description': 'new',
      'repository.visibility_level': 20,
      labels: [{ title: 'new' }],
    })
    t.strictSame(keysOf(other), keysOf(webhook(kind)), kind)
  }
})

void test('payloads of any depth are accepted', async (t) => {
  const depth = 200_000
  const deep = `${'['.repeat(depth)}${']'.repeat(depth)}`
  const text = JSON.stringify(withField(webhook('issue'), 'changes', '@')).replace('"@"', deep)
  const delivery = parseScmWebhook(new TextEncoder().encode(text), context)
  t.equal(delivery.kind, 'events')
})

void test('any JSON gives events, is ignored or is an invalid payload', async (t) => {
  const anyPayload = oneof(
    json().map((text) => Buffer.from(text)),
    string().map((text) => Buffer.from(text)),
    uint8Array(),
    record({
      object_kind: constantFrom(...kinds),
      project_name: constant('p'),
      rest: dictionary(string(), jsonValue()),
    }).map(({ rest, ...fixed }) => bodyOf({ ...rest, ...fixed })),
  )
  assert(property(anyPayload, settles), { numRuns: 1000 })
  t.pass()
})

void test('any field may be missing or of any type', async (t) => {
  const values = [
    undefined,
    null,
    0,
    -1.5,
    1e308,
    true,
    '',
    ' ',
    'x',
    '\uD800',
    [],
    [null],
    {},
    [{}],
  ]
  for (const kind of kinds) {
    const payload = webhook(kind)
    for (const path of pathsOf(payload)) {
      for (const value of values) {
        t.ok(settles(bodyOf(withField(payload, path, value))), `${kind} ${path}`)
      }
    }
  }
  const mutation = tuple(nat(), jsonValue())
  assert(
    property(
      constantFrom(...kinds),
      array(mutation, { minLength: 2, maxLength: 6 }),
      (kind, mutations) => {
        const paths = pathsOf(webhook(kind)).filter((path) => !path.includes('.'))
        const fields = mutations.map(([index, value]) => [paths[index % paths.length], value])
        return settles(bodyOf(withFields(webhook(kind), Object.fromEntries(fields))))
      },
    ),
  )
})

/** Whether the outcome is a documented one, and its events are complete. */
function settles(body: Uint8Array): boolean {
  try {
    const delivery = parseScmWebhook(body, context)
    if (delivery.kind === 'ignored') return delivery.objectKind !== ''
    return delivery.events.length > 0 && delivery.events.every(isWhole)
  } catch (error) {
    return error instanceof AppError && error.code === 'invalid_payload' && 'field' in error.details
  }
}

type Event = Extract<ReturnType<typeof parseScmWebhook>, { kind: 'events' }>['events'][number]

function isWhole(event: Event): boolean {
  const tags = Object.values(event.tags ?? {})
  return (
    /^scm\.\P{Cc}{1,116}$/u.test(event.source) &&
    event.message.trim() !== '' &&
    Number.isSafeInteger(event.timestampMs) &&
    event.timestampMs >= 0 &&
    event.timestampMs <= context.nowMs + DAY_MS &&
    /^sha256:[0-9a-f]{64}$/.test(event.dedupKey) &&
    tags.every((tag) => typeof tag === 'string' && tag !== '')
  )
}
