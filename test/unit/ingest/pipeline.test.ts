import { gzipSync } from 'node:zlib'
import { test } from 'tap'
import type { BodyResult } from '../../../src/ingest/block.js'
import type { Pool } from '../../../src/ingest/pool.js'
import { fillDisk } from '../../support/disk.js'
import { bodyOf, createTestPipeline, SUBMISSION, type Row } from '../../support/pipeline.js'
import { MINUTE_MS } from '../../../src/model/time.js'

const T0 = 1_700_000_000_000
const event = (message: string, fields: object = {}): object => ({
  source: 'app',
  message,
  timestamp: new Date(T0).toISOString(),
  ...fields,
})

const total = (rows: readonly Row[]): number => rows.reduce((sum, row) => sum + Number(row['n']), 0)
const newOnes = (rows: readonly Row[]): readonly Row[] => rows.filter((row) => row['is_new'] === 1)

void test('every message of a body is accepted, rejected or dropped, and stored accordingly', async (t) => {
  const { send, landing, target, sources } = await createTestPipeline(t)
  sources.states.set('off', 'disabled')
  const lines = [
    event('fine'),
    event('fine'),
    event('of a disabled source', { source: 'off' }),
    { source: 5, message: 'without a name' },
    event(''),
    event('too early', { timestamp: '1850-01-01T00:00:00Z' }),
  ]
  const result = await send(lines)
  t.equal(result.received, lines.length)
  t.equal(result.received, result.accepted + result.rejected + result.dropped)
  t.equal(result.dropped, 1)
  t.same(result.sources, ['app'])
  const rows = await landing()
  t.equal(total(rows), result.accepted)
  t.notOk(rows.some((row) => row['source'] === 'off'))
  const dead = target.stored('dead_letters')
  t.equal(dead.length, result.rejected)
  t.same(
    result.errors.map(({ line, code }) => [line, code]),
    dead.map((row) => [row['line'], row['reason']]),
  )
  const numbers = [...newOnes(rows), ...dead].map((row) => row['id'])
  t.equal(new Set(numbers).size, numbers.length, 'events and dead letters share no id')
})

void test('a permitted sender registers a source once, with its first message', async (t) => {
  const { send, landing, target } = await createTestPipeline(t)
  const all = await Promise.all(
    Array.from({ length: 20 }, (_, i) => send([event(`hello ${i}`, { source: `s${i % 3}` })])),
  )
  t.ok(all.every(({ accepted }) => accepted === 1))
  t.equal(total(await landing()), 20)
  t.same(target.registered.map(({ name }) => name).toSorted(), ['s0', 's1', 's2'])
  t.equal(target.calls.filter((call) => call.startsWith('register')).length, 1, 'all at once')
})

void test('messages of a source that may not be registered are dead letters', async (t) => {
  const { send, landing, target, sources } = await createTestPipeline(t)
  sources.states.set('known', 'ok')
  const result = await send([event('a'), event('b', { source: 'known' })], { register: null })
  t.match(result, { received: 2, accepted: 1, rejected: 1, dropped: 0 })
  t.same(
    result.errors.map(({ code }) => code),
    ['unknown_source'],
  )
  t.equal(total(await landing()), 1)
  const [dead] = target.stored('dead_letters')
  t.match(dead, { reason: 'unknown_source', source: 'app' })
  t.match(JSON.parse(String(dead?.['raw'])), { source: 'app', message: 'a' }, 'it can be replayed')
  t.same(target.registered, [])
})

void test('the limit of sources also applies within one body', async (t) => {
  const { send, landing, sources, target } = await createTestPipeline(t)
  sources.max = 3
  const lines = Array.from({ length: 5 }, (_, i) => event('x', { source: `s${i}` }))
  const result = await send(lines)
  t.match(result, { received: 5, accepted: 3, rejected: 2 })
  t.same(
    result.errors.map(({ code }) => code),
    ['source_limit', 'source_limit'],
  )
  t.equal(total(await landing()), 3)
  t.same(target.registered.length, 3)
  t.equal(sources.states.size, 3)
})

void test('a body may name ten thousand sources; the records of further ones are dead letters', async (t) => {
  const { send, sources } = await createTestPipeline(t)
  sources.max = 20_000
  const lines = Array.from({ length: 10_050 }, (_, i) => event('x', { source: `s${i}` }))
  const result = await send([...lines, event('y', { source: 's0' })])
  t.match(result, { received: 10_051, accepted: 10_001, rejected: 50 })
  t.match(result.errors[0], { code: 'key_source_limit', line: 10_001 })
  t.equal(sources.states.size, 10_000)
})

void test('a body with a source that its key does not allow is refused and not stored', async (t) => {
  const { send, landing, target } = await createTestPipeline(t)
  const [good, bad] = await Promise.all([
    send([event('kept')]),
    send([event('mine'), { no: 'source' }, event('not mine', { source: 'theirs' })], {
      allowedSources: ['app'],
    }),
  ])
  t.equal(good.accepted, 1)
  t.match(bad, { received: 0, accepted: 0, refusal: { code: 'source_not_allowed' } })
  t.equal(total(await landing()), 1)
  t.same(target.stored('dead_letters'), [])
  t.same(
    target.registered.map(({ name }) => name),
    ['app'],
  )
})

void test('an invalid body does not affect others in its task', async (t) => {
  const { pipeline, send, landing } = await createTestPipeline(t)
  const bodies = ['[1,2', '', '{"a":', '[]', '"text"'].map((text) =>
    pipeline.submit({ ...SUBMISSION, bytes: bodyOf(text) }),
  )
  const good = await send([event('kept')])
  t.equal(good.accepted, 1)
  const results = await Promise.all(bodies)
  t.equal(results[0]?.refusal?.code, 'validation_error')
  t.ok(results.every((r) => r.received === r.accepted + r.rejected + r.dropped))
  t.equal(total(await landing()), 1)
})

void test('repeats have the id and the priority of their event', async (t) => {
  const { send, landing } = await createTestPipeline(t)
  const at = (ms: number): object => ({ timestamp: new Date(T0 + ms).toISOString() })
  await send([event('disk full', at(0)), event('disk full', at(0)), event('other', at(0))])
  await send([event('disk full', at(59_999))])
  await send([event('disk full', at(MINUTE_MS)), event('disk full', { ...at(60_500), host: 'h' })])
  const rows = (await landing()).filter(
    (row) => row['message'] === 'disk full' && row['host'] === '',
  )
  t.same(
    rows.map((row) => [row['n'], row['is_new']]),
    [
      [2, 1],
      [1, 0],
      [1, 1],
    ],
  )
  t.equal(rows[1]?.['id'], rows[0]?.['id'])
  t.not(rows[2]?.['id'], rows[0]?.['id'])
  t.equal(rows[1]?.['priority'], rows[0]?.['priority'])
  t.equal(new Set(newOnes(await landing()).map((row) => row['id'])).size, 4)
})

void test('a corrected priority applies to repeats of the event and to the template', async (t) => {
  const { send, landing, sequencer, overrides } = await createTestPipeline(t)
  await send([event('user 17 logged out')])
  const [first] = await landing()
  const template = BigInt(String(first?.['template_id'])).toString(16).padStart(16, '0')
  const to = first?.['priority'] === 0 ? 3 : 0
  overrides.set([[template, { priority: to, atMs: 1 }]])
  sequencer.correct(Number(first?.['id']), to)
  await send([event('user 17 logged out'), event('user 18 logged out')])
  const [, repeat, second] = await landing()
  t.match(repeat, { is_new: 0, priority: to, id: first?.['id'] })
  t.match(second, { is_new: 1, priority: to, priority_source: 1, confidence: 1 })
  overrides.set([[template, null]])
  await send([event('user 19 logged out')])
  t.match((await landing()).at(-1), { priority: first?.['priority'], priority_source: 0 })
})

void test('a source that is deleted while its messages are encoded is unknown to them', async (t) => {
  let isHeld: (() => void) | null = null
  const held = new Promise<void>((resolve) => {
    isHeld = resolve
  })
  let release: (() => void) | null = null
  const { send, landing, sources, target } = await createTestPipeline(t, {
    pool: (pool): Pool => ({
      ...pool,
      encode: async (task) => {
        const result = await pool.encode(task)
        if (release === null) {
          await new Promise<void>((resolve) => {
            release = resolve
            isHeld?.()
          })
        }
        return result
      },
    }),
  })
  sources.states.set('app', 'ok')
  const sent = send([event('late')], { register: null })
  await held
  sources.states.delete('app')
  const go: (() => void) | null = release
  if (go !== null) (go as () => void)()
  t.match(await sent, { received: 1, accepted: 0, rejected: 1 })
  t.same(await landing(), [])
  t.match(target.stored('dead_letters'), [{ reason: 'unknown_source' }])
})

void test('a command applies to the rows acknowledged before it and to none later', async (t) => {
  const { send, pipeline, target } = await createTestPipeline(t)
  await send([event('before')])
  const cleared = pipeline.execute({ kind: 'clear-all' })
  await send([event('after')])
  t.same(await cleared, { done: 'clear-all' })
  await pipeline.settle()
  const at = target.calls.indexOf('execute clear-all')
  t.equal(target.calls.slice(0, at).filter((call) => call.startsWith('insert landing')).length, 1)
  t.equal(target.calls.slice(at).filter((call) => call.startsWith('insert landing')).length, 1)
})

void test('templates are stored once, with their first message, and have stable ids', async (t) => {
  const { send, landing, target, templates } = await createTestPipeline(t)
  for (let i = 0; i < 12; i++) await send([event(`connection ${i} closed by peer`)])
  const rows = await landing()
  t.equal(new Set(rows.map((row) => row['template_id'])).size, 1)
  const id = BigInt(String(rows[0]?.['template_id'])).toString(16).padStart(16, '0')
  t.match(templates.byId(id), { id, source: 'app', text: 'connection <*> closed by peer' })
  t.ok(target.templateRows.some((row) => row.id === id))
  t.ok(target.calls.indexOf('templates') < target.calls.findIndex((c) => c.startsWith('insert')))
})

void test('bodies beyond the memory limit are refused until memory is released', async (t) => {
  const { pipeline, send } = await createTestPipeline(t)
  t.equal(pipeline.hasRoom(33 * 1024 * 1024, 'test'), false)
  const big = { ...SUBMISSION, bytes: new Uint8Array(20 * 1024 * 1024) }
  const first = pipeline.submit(big)
  await t.rejects(pipeline.submit(big), { code: 'overloaded', retryAfterS: 1 })
  await first
  t.equal(pipeline.bytes, 0)
  t.equal((await send([event('x')])).accepted, 1)
})

void test('a sender that fills the memory leaves room for others', async (t) => {
  const { pipeline } = await createTestPipeline(t)
  const body = (owner: string): Promise<BodyResult> =>
    pipeline.submit({ ...SUBMISSION, owner, bytes: new Uint8Array(1024 * 1024) })
  const sent = Array.from({ length: 40 }, () => body('greedy'))
  t.ok(pipeline.hasRoom(1024 * 1024, 'other'))
  t.notOk(pipeline.hasRoom(1024 * 1024, 'greedy'))
  sent.push(body('other'))
  const results = await Promise.allSettled(sent)
  t.equal(results.at(-1)?.status, 'fulfilled')
  t.equal(results.filter(({ status }) => status === 'rejected').length, 40 - 21)
  t.equal(pipeline.bytes, 0)
})

void test('compressed bodies are stored, with a named coding or without', async (t) => {
  const { pipeline, landing } = await createTestPipeline(t)
  const text = (i: number): string => JSON.stringify(event(`compressed ${i}`))
  const sent = Array.from({ length: 300 }, (_, i) =>
    pipeline.submit({
      ...SUBMISSION,
      bytes: Uint8Array.from(gzipSync(text(i))),
      coding: i % 2 === 0 ? 'gzip' : 'identity',
    }),
  )
  const bad = pipeline.submit({ ...SUBMISSION, bytes: bodyOf('no zstd'), coding: 'zstd' })
  const bomb = pipeline.submit({
    ...SUBMISSION,
    bytes: Uint8Array.from(gzipSync(Buffer.alloc(17 * 1024 * 1024))),
    coding: 'gzip',
  })
  t.match(await bad, { received: 0, refusal: { code: 'bad_request' } })
  t.match(await bomb, { received: 0, refusal: { code: 'body_too_large' } })
  const results = await Promise.all(sent)
  t.ok(results.every(({ accepted }) => accepted === 1))
  t.equal(results[0]?.bytes, text(0).length, 'counted as decompressed')
  t.equal(total(await landing()), 300)
})

void test('bodies that a worker does not get to in time are encoded by another task', async (t) => {
  const { pipeline, landing } = await createTestPipeline(t)
  // 5 MB each when decompressed: a task opens one.
  const large = gzipSync(`${JSON.stringify(event('x'))}${'\n'.repeat(5_000_000)}`)
  const results = await Promise.all(
    Array.from({ length: 12 }, () =>
      pipeline.submit({ ...SUBMISSION, bytes: Uint8Array.from(large), coding: 'gzip' }),
    ),
  )
  t.ok(results.every(({ accepted }) => accepted === 1))
  t.equal(total(await landing()), 12)
})

void test('a body for which nobody waits any more is not stored', async (t) => {
  const { pipeline, send, landing } = await createTestPipeline(t)
  const bytes = bodyOf(JSON.stringify(event('abandoned')))
  const abandoned = pipeline.submit({ ...SUBMISSION, bytes, isAbandoned: () => true })
  const kept = send([event('kept')])
  await t.rejects(abandoned, { code: 'overloaded' })
  await kept
  t.same(
    (await landing()).map((row) => row['message']),
    ['kept'],
  )
  t.equal(pipeline.bytes, 0)
})

void test('a body that can not be made durable is refused, and no later message refers to it', async (t) => {
  const { send, landing, target, wal } = await createTestPipeline(t)
  const disk = await fillDisk(t)
  const refused = await Promise.allSettled([send([event('lost')]), send([event('lost too')])])
  for (const result of refused)
    t.match(result, { status: 'rejected', reason: { code: 'dependency_unavailable' } })
  disk.free()
  t.match(await send([event('lost')]), { accepted: 1 })
  const rows = await landing()
  t.same(
    rows.map((row) => [row['message'], row['is_new'], row['n']]),
    [['lost', 1, 1]],
  )
  t.same(
    target.registered.map(({ name }) => name),
    ['app'],
    'its source is stored all the same',
  )
  t.ok(
    target.templateRows.some(({ text }) => text === 'lost'),
    'and its template',
  )
  t.ok(wal.failures > 0)
})

void test('after close new bodies are refused, and the others are answered', async (t) => {
  const { pipeline, send } = await createTestPipeline(t)
  const begun = Array.from({ length: 30 }, (_, i) => send([event(`m ${i}`)]))
  const closed = pipeline.close()
  await t.rejects(send([event('late')]), { code: 'overloaded' })
  await closed
  t.ok((await Promise.all(begun)).every(({ accepted }) => accepted === 1))
})
