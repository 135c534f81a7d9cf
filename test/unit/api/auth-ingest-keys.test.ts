import { test, type Test } from 'tap'
import { createIngestKeys, type IngestKey } from '../../../src/api/auth/ingest-keys.js'
import { memoryEntities } from '../../support/entities.js'
import { until } from '../../support/state-contract.js'
import { MINUTE_MS } from '../../../src/model/time.js'

const input = { name: 'shipper', sources: ['web', 'db'], autoRegister: false, defaultSource: 'web' }

const withLock = <T>(_key: string, _ttlMs: number, work: () => Promise<T>): Promise<T> => work()

function setUp(t: Test) {
  const clock = { ms: 1_700_000_000_000 }
  const stored = memoryEntities<IngestKey>()
  let updates = 0
  const entities: typeof stored = {
    ...stored,
    update: (id, change) => {
      updates++
      return stored.update(id, change)
    },
  }
  const onError = (error: unknown) => t.fail(String(error))
  const keys = createIngestKeys({ entities, withLock, onError, nowMs: () => clock.ms })
  return { clock, stored, keys, updates: () => updates }
}

void test('a key has its shape, and only its hash is stored', async (t) => {
  const { keys, stored } = setUp(t)
  const { key, stored: made } = await keys.create(input)
  t.match(key, /^ik_[A-Za-z0-9_-]{40}$/)
  t.equal(made.prefix, key.slice(0, 8))
  t.notOk(JSON.stringify(stored.list()).includes(key.slice(8)))
  t.not((await keys.create(input)).key, key)
})

void test('a key is found by its text, and by no other', async (t) => {
  const { keys } = setUp(t)
  const { key, stored } = await keys.create(input)
  await keys.create({ ...input, name: 'other' })
  t.match(keys.verify(key), { id: stored.id, ...input })
  for (const other of [
    '',
    'ik_',
    key.slice(0, -1),
    `${key} `,
    key.toUpperCase(),
    stored.hash,
    stored.id,
  ])
    t.equal(keys.verify(other), null, other)
})

void test('a deleted key is refused at once, and cannot be deleted twice', async (t) => {
  const { keys } = setUp(t)
  const { key, stored } = await keys.create(input)
  t.ok(keys.verify(key))
  await keys.remove(stored.id)
  t.equal(keys.verify(key), null)
  t.strictSame(keys.list(), [])
  await t.rejects(keys.remove(stored.id), { code: 'not_found' })
})

void test('the last use is written once a minute at most', async (t) => {
  const { keys, clock, updates, stored } = setUp(t)
  const { key } = await keys.create(input)
  const startMs = clock.ms
  for (let i = 0; i < 600; i++) {
    keys.verify(key)
    clock.ms += 100
  }
  t.equal(updates(), 1)
  keys.verify(key)
  t.equal(updates(), 2)
  await until(() => stored.list()[0]?.lastUsedAtMs === startMs + MINUTE_MS)
})

void test('a last use that cannot be written is reported and does not refuse the key', async (t) => {
  const stored = memoryEntities<IngestKey>()
  const errors: unknown[] = []
  const keys = createIngestKeys({
    entities: { ...stored, update: () => Promise.reject(new Error('disk')) },
    withLock,
    onError: (error) => errors.push(error),
  })
  const { key } = await keys.create(input)
  t.ok(keys.verify(key))
  await new Promise((resolve) => setImmediate(resolve))
  t.match(errors, [{ message: 'disk' }])
})

void test('the first start makes a key that may do everything', async (t) => {
  const { keys } = setUp(t)
  const made = await keys.ensureFirst(null)
  t.match(made?.key, /^ik_/)
  t.match(keys.verify(made?.key ?? ''), { sources: null, autoRegister: true })
  t.equal(await keys.ensureFirst(null), null)
})

void test('a given key is there after the start, once', async (t) => {
  const { keys } = setUp(t)
  await keys.create(input)
  const given = 'chosen-by-the-operator'
  t.equal((await keys.ensureFirst(given))?.key, given)
  t.equal(await keys.ensureFirst(given), null)
  t.match(keys.verify(given), { sources: null, autoRegister: true })
  t.equal(keys.list().length, 2)
})
