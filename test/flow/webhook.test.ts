import { createHmac } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { test } from 'tap'

import { startTestServer } from '../support/clickhouse.js'
import { startRedis } from '../support/redis.js'
import {
  KNOWN,
  logIn,
  settledCount,
  startService,
  tempDataDir,
  type Caller,
  type Service,
} from '../support/service.js'
import { bodyOf, webhook, withField, withFields } from '../support/webhooks.js'

const SECRET = 'a secret for webhooks'
const PREVIOUS = 'the secret before it'
/** The project of the fixtures. */
const PROJECT = 'plant/water/pump-control'
const SOURCE = `scm.${PROJECT}`

const sign = (body: Uint8Array, secret = SECRET): string =>
  createHmac('sha256', secret).update(body).digest('hex')

async function deliver(
  service: Service,
  body: Uint8Array,
  signature: string | null = sign(body),
): Promise<{ readonly status: number; readonly reply: unknown }> {
  const response = await fetch(`${service.collector}/webhooks/scm`, {
    method: 'POST',
    body: Buffer.from(body),
    headers: signature === null ? {} : { 'x-scm-token': signature },
  })
  return { status: response.status, reply: await response.json() }
}

interface Item {
  readonly message: string
  readonly severity: string
  readonly type: string
  readonly environment: string
  readonly tags: Readonly<Record<string, string>>
  readonly occurrence_count: number
}

const eventsOf = async (caller: Caller, source: string): Promise<readonly Item[]> => {
  const query = new URLSearchParams({ source, start_time: '1970-01-01', limit: '200' })
  return (await caller.get<{ readonly items: readonly Item[] }>(`/api/logs?${query}`)).items
}

const occurrences = async (caller: Caller, source: string): Promise<number> =>
  (await eventsOf(caller, source)).reduce((sum, event) => sum + event.occurrence_count, 0)

const accepted = (events: number) => ({ status: 202, reply: { status: 'accepted', events } })
const ANSWER = {
  duplicate: { status: 202, reply: { status: 'duplicate', events: 0 } },
  ignored: { status: 202, reply: { status: 'ignored', events: 0 } },
  unsigned: {
    status: 401,
    reply: { detail: { message: 'Invalid webhook signature', code: 'invalid_signature' } },
  },
}

void test('the receiver of one instance', async (t) => {
  const secrets = { WEBHOOK_SECRET: SECRET, WEBHOOK_SECRET_PREVIOUS: PREVIOUS }
  const service = await startService(t, { DATA_DIR: tempDataDir(t), ...KNOWN, ...secrets })
  const caller = await logIn(service)
  const pipeline = bodyOf(webhook('pipeline'))

  await t.test('a delivery without its signature changes nothing', async (t) => {
    const right = sign(pipeline)
    const wrong = [
      null,
      '',
      right.slice(1),
      `${right}0`,
      right.toUpperCase(),
      'ü',
      `sha256=${right}`,
    ]
    for (const signature of [...wrong, sign(pipeline, 'another secret here')])
      t.match(await deliver(service, pipeline, signature), ANSWER.unsigned, String(signature))
    t.equal(await occurrences(caller, SOURCE), 0)
  })

  await t.test('a delivery counts once, whichever secret signed it', async (t) => {
    t.match(await deliver(service, pipeline), accepted(1))
    t.match(await deliver(service, pipeline), ANSWER.duplicate)
    t.match(await deliver(service, pipeline, sign(pipeline, PREVIOUS)), ANSWER.duplicate)
    t.equal(await settledCount(() => occurrences(caller, SOURCE), 1), 1)
    const [event] = await eventsOf(caller, SOURCE)
    t.match(event, {
      type: 'event',
      severity: 'CRITICAL',
      environment: 'production',
      message: 'Pipeline failed on main (77aa0b1c2d3e4f5061728394a5b6c7d8e9f00112)',
      tags: {
        scm_event_type: 'pipeline',
        pipeline_id: '88120',
        status: 'failed',
        ref: 'main',
        sha: '77aa0b1c2d3e4f5061728394a5b6c7d8e9f00112',
        triggered_by: 'oberg',
      },
    })
  })

  await t.test('copies that arrive together count once', async (t) => {
    const body = bodyOf(withField(webhook('pipeline'), 'object_attributes.id', 990))
    const replies = await Promise.all(Array.from({ length: 8 }, () => deliver(service, body)))
    t.equal(replies.filter(({ reply }) => t.match(reply, {}) && isAccepted(reply)).length, 1)
    t.equal(await settledCount(() => occurrences(caller, SOURCE), 2), 2)
  })

  await t.test('the source is registered, and can be turned off', async (t) => {
    const sources = await caller.get<readonly { name: string }[]>('/api/sources')
    t.match(
      sources.find(({ name }) => name === SOURCE),
      { type: 'webhook', connector: 'gitlab', enabled: true },
    )
    const path = `/api/sources/${encodeURIComponent(SOURCE)}/toggle`
    await caller.call('POST', `${path}?enabled=false`)
    const body = bodyOf(withField(webhook('pipeline'), 'object_attributes.id', 991))
    t.match(await deliver(service, body), ANSWER.ignored)
    await caller.call('POST', `${path}?enabled=true`)
    t.match(await deliver(service, body), accepted(1))
  })

  await t.test('what is missing is named, and what is not supported is ignored', async (t) => {
    const missing = withFields(webhook('push'), { ref: undefined })
    const refusal = { detail: { code: 'invalid_payload', details: { field: 'ref' } } }
    t.match(await deliver(service, bodyOf(missing)), { status: 400, reply: refusal })
    const broken = new TextEncoder().encode('{"object_kind":')
    t.match(await deliver(service, broken), { status: 400 })
    t.match(await deliver(service, bodyOf({ object_kind: 'wiki_page' })), ANSWER.ignored)
  })

  await t.test('a body may come in chunks, and has its limit', async (t) => {
    const body = bodyOf(withField(webhook('pipeline'), 'object_attributes.id', 992))
    t.equal(await deliverInChunks(service, body), 202)
    const large = new Uint8Array(25 * 1024 * 1024 + 1).fill(0x20)
    t.match(await deliver(service, large), { status: 413 })
  })

  await t.test('real deliveries, when WEBHOOKS_DIR names a folder of them', async (t) => {
    const folder = process.env['WEBHOOKS_DIR'] ?? ''
    if (!existsSync(folder)) {
      t.pass('skipped: WEBHOOKS_DIR is not set', { skip: 'WEBHOOKS_DIR is not set' })
      return
    }
    for (const name of readdirSync(folder).filter((file) => file.endsWith('.json'))) {
      const { status } = await deliver(service, readFileSync(join(folder, name)))
      t.equal(status, 202, name)
    }
  })
})

const isAccepted = (reply: unknown): boolean =>
  typeof reply === 'object' && reply !== null && 'status' in reply && reply.status === 'accepted'

/** Sends a body without a length, in two pieces. */
const deliverInChunks = (service: Service, body: Uint8Array): Promise<number> =>
  new Promise((resolve, reject) => {
    const headers = { 'x-scm-token': sign(body), 'transfer-encoding': 'chunked' }
    const url = `${service.collector}/webhooks/scm`
    const sending = request(url, { method: 'POST', headers }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    sending.on('error', reject)
    sending.write(body.subarray(0, 100))
    setTimeout(() => sending.end(body.subarray(100)), 50)
  })

void test('without a secret every delivery is refused', async (t) => {
  const service = await startService(t, { DATA_DIR: tempDataDir(t), ...KNOWN })
  const body = bodyOf(webhook('pipeline'))
  t.match(await deliver(service, body), ANSWER.unsigned)
  t.match(await deliver(service, body, sign(body, '')), ANSWER.unsigned)
})

void test('two instances that share ClickHouse and Redis', async (t) => {
  const redis = await startRedis()
  if (redis === null) {
    t.pass('skipped', { skip: 'redis-server is not installed' })
    return
  }
  t.teardown(() => redis.kill())
  const server = await startTestServer()
  t.teardown(() => server.stop())
  const { url, username, password } = server.engine
  const shared = {
    ...KNOWN,
    WEBHOOK_SECRET: SECRET,
    JWT_SECRET: 'one secret for both instances, long enough',
    REDIS_URL: redis.url,
    CLICKHOUSE_URL: url,
    CLICKHOUSE_USER: username,
    CLICKHOUSE_PASSWORD: password,
  }
  const first = await startService(t, { DATA_DIR: tempDataDir(t), ...shared })
  const second = await startService(t, { DATA_DIR: tempDataDir(t), ...shared })
  const caller = await logIn(first)

  await t.test('count concurrent copies of one delivery once', async (t) => {
    for (let id = 1; id <= 5; id++) {
      const body = bodyOf(withField(webhook('pipeline'), 'object_attributes.id', id))
      const replies = await Promise.all([deliver(first, body), deliver(second, body)])
      t.same(
        replies.map(({ status }) => status),
        [202, 202],
      )
      t.equal(replies.filter(({ reply }) => isAccepted(reply)).length, 1, `delivery ${id}`)
    }
    t.equal(await settledCount(() => occurrences(caller, SOURCE), 5), 5)
  })

  await t.test('go on when Redis is away', async (t) => {
    await redis.kill()
    const body = bodyOf(withField(webhook('pipeline'), 'object_attributes.id', 77))
    t.match(await deliver(first, body), accepted(1))
    t.match(await deliver(first, body), ANSWER.duplicate)
  })
})
