import { test, type Test } from 'tap'
import { ByteBuffer } from '../../../src/lib/byte-buffer.js'
import { FixedColumn, toNativeBlock } from '../../../src/clickhouse/native-writer.js'
import { encodeRecord, type LogRecord } from '../../../src/wal/record.js'
import type { Wal } from '../../../src/wal/wal.js'
import { Writer } from '../../../src/writer/writer.js'
import {
  createTestWal,
  RecordingTarget,
  refusalsOf,
  tempDir,
  writerNotes,
} from '../../support/pipeline.js'

const EMPTY: LogRecord = {
  landing: null,
  landingRows: 0,
  dead: null,
  templates: [],
  registrations: [],
  command: null,
}

function blockOf(id: number): Uint8Array {
  const column = new FixedColumn('id', 'UInt64', 8)
  column.data.u64(id)
  return toNativeBlock([column], 1, new ByteBuffer()).bytes
}

const rowsOf = (...ids: number[]): LogRecord[] =>
  ids.map((id) => ({ ...EMPTY, landing: blockOf(id), landingRows: 1 }))

async function put(wal: Wal, records: readonly LogRecord[]): Promise<number> {
  const appended = records.map((record) => wal.append(encodeRecord(record)))
  await Promise.all(appended.map(({ durable }) => durable))
  return appended.at(-1)?.seq ?? 0
}

interface Rig {
  readonly wal: Wal
  readonly target: RecordingTarget
  readonly writer: Writer
  readonly failures: unknown[]
  readonly written: number[]
}

async function start(t: Test, dir = tempDir(t), target = new RecordingTarget()): Promise<Rig> {
  const wal = await createTestWal(t, dir)
  const { notes, failures, written } = writerNotes()
  const quarantine = refusalsOf(wal, target).refusals
  const writer = new Writer({ wal, target, quarantine, ...notes })
  return { wal, target, writer, failures, written }
}

async function end({ writer, wal }: Rig): Promise<void> {
  await writer.stop()
  await wal.close()
}

const ids = (target: RecordingTarget): readonly unknown[] =>
  target.stored('landing').map((row) => row['id'])

void test('waiting records are one insert, in order', async (t) => {
  const rig = await start(t)
  const last = await put(rig.wal, rowsOf(1, 2, 3))
  rig.writer.start()
  await rig.writer.flush(last)
  t.same(ids(rig.target), [1n, 2n, 3n])
  t.equal(rig.target.inserts.length, 1)
  t.same(rig.written, [3])
  t.same(rig.wal.waiting, [])
  await end(rig)
})

void test('a command is executed between the rows before it and the rows after it', async (t) => {
  const rig = await start(t)
  const command = { kind: 'delete-sources' as const, sources: ['a'] }
  const [first, second] = [rowsOf(1, 2), rowsOf(4, 5)]
  const asked = rig.writer.resultOf(3)
  await put(rig.wal, [
    ...first,
    { ...EMPTY, landing: blockOf(3), landingRows: 1, command },
    ...second,
  ])
  rig.writer.start()
  await rig.writer.flush(5)
  t.same(
    rig.target.calls.map((call) => call.split(' ').slice(0, 2).join(' ')),
    ['insert landing', 'insert landing', 'execute delete-sources', 'insert landing'],
  )
  t.same(ids(rig.target), [1n, 2n, 3n, 4n, 5n])
  t.same(await asked, { done: 'delete-sources' })
  await end(rig)
})

void test('replayed dead letters are deleted at once, after the rows of their batch', async (t) => {
  const rig = await start(t)
  const replayed = rowsOf(1, 2, 3).map((record, i) => ({
    ...record,
    command: { kind: 'delete-dead-letters' as const, ids: [10 + i, 20 + i] },
  }))
  await put(rig.wal, [...rowsOf(8), ...replayed, ...rowsOf(9)])
  rig.writer.start()
  await rig.writer.flush(5)
  t.same(
    rig.target.calls.map((call) => call.split(' ').slice(0, 2).join(' ')),
    ['insert landing', 'execute delete-dead-letters'],
  )
  t.same(rig.target.commands, [{ kind: 'delete-dead-letters', ids: [10, 20, 11, 21, 12, 22] }])
  t.same(ids(rig.target), [8n, 1n, 2n, 3n, 9n])
  await end(rig)
})

void test('templates are stored before the rows that name them, and rows wait for no source', async (t) => {
  const rig = await start(t)
  const registration = {
    name: 's',
    type: 'push',
    connector: 'custom',
    applicationId: null,
    keyId: '',
  } as const
  const template = { source: 's', id: '00000000000000ff', redirectId: '', text: 'x', born: 1 }
  const [row = EMPTY] = rowsOf(1)
  const last = await put(rig.wal, [
    { ...row, registrations: [registration], templates: [template], dead: blockOf(9) },
  ])
  let refusals = 2
  rig.target.fault = (call) =>
    call.startsWith('register') && refusals-- > 0 ? new Error('no answer') : null
  rig.writer.start()
  await rig.writer.flush(last)
  const first = ['templates', 'register', 'insert', 'insert']
  t.same(
    rig.target.calls.map((call) => call.split(' ')[0]),
    [...first, ...first, ...first],
    'all of the batch is sent again until its sources are stored',
  )
  const [landing, dead] = rig.target.inserts
  t.equal(dead?.table, 'dead_letters')
  t.not(landing?.token, dead?.token, 'each table has a token of its own')
  await end(rig)
})

void test('a batch that fails is sent again unchanged after more appends', async (t) => {
  const rig = await start(t)
  let fails = 3
  rig.target.fault = () => (fails-- > 0 ? new Error('no answer') : null)
  await put(rig.wal, rowsOf(1, 2))
  rig.writer.start()
  const flushed = rig.writer.flush(2)
  while (rig.failures.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  t.type(rig.writer.failingSinceMs, 'number')
  const last = await put(rig.wal, rowsOf(3))
  await flushed
  t.equal(rig.writer.failingSinceMs, null)
  const tokens = rig.target.calls.slice(0, 4)
  t.equal(new Set(tokens).size, 1, 'one token for all four attempts')
  t.equal(rig.target.inserts[0]?.rows.length, 2)
  await rig.writer.flush(last)
  t.same(ids(rig.target), [1n, 2n, 3n])
  await end(rig)
})

void test('a batch whose answer was lost with the process is sent again under its token', async (t) => {
  const dir = tempDir(t)
  const target = new RecordingTarget()
  const first = await start(t, dir, target)
  const losses: string[] = []
  // The store takes the rows, and its answer never arrives.
  const insert = target.insert.bind(target)
  target.insert = async (...args) => {
    await insert(...args)
    losses.push(args[2])
    throw new Error('connection lost')
  }
  await put(first.wal, rowsOf(1, 2))
  first.writer.start()
  void first.writer.flush(2).catch(() => undefined)
  while (losses.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  await end(first)
  target.insert = insert
  const second = await start(t, dir, target)
  await put(second.wal, rowsOf(3))
  second.writer.start()
  await second.writer.flush(3)
  t.same(ids(target), [1n, 2n, 3n])
  const tokens = target.inserts.map(({ token }) => token)
  t.equal(new Set(tokens.slice(0, -1)).size, 1)
  t.not(tokens.at(-1), tokens[0])
  await end(second)
})

void test('a flush waits for the records that are in the WAL and for nothing else', async (t) => {
  const rig = await start(t)
  await rig.writer.flush(0)
  await rig.writer.flush(1000)
  t.same(rig.target.calls, [])
  rig.writer.start()
  await put(rig.wal, rowsOf(1))
  // A record that was refused has a sequence that is never done.
  await rig.writer.flush(1000)
  t.same(ids(rig.target), [1n])
  await end(rig)
})

void test('a flush can be aborted, and the rows stay', async (t) => {
  const rig = await start(t)
  rig.target.fault = () => new Error('away')
  const last = await put(rig.wal, rowsOf(1))
  rig.writer.start()
  await t.rejects(rig.writer.flush(last, AbortSignal.timeout(50)), { name: 'TimeoutError' })
  rig.target.fault = null
  await rig.writer.flush(last)
  t.same(ids(rig.target), [1n])
  await end(rig)
})

void test('rows are written without a flush, also after a pause', async (t) => {
  const rig = await start(t)
  rig.writer.start()
  for (const id of [1, 2]) {
    await put(rig.wal, rowsOf(id))
    rig.writer.notify()
    while (rig.wal.waiting.length > 0) await new Promise((resolve) => setTimeout(resolve, 20))
  }
  t.same(ids(rig.target), [1n, 2n])
  await end(rig)
})

void test('it stops while ClickHouse is unreachable, and the records stay in the WAL', async (t) => {
  const rig = await start(t)
  rig.target.fault = () => new Error('away')
  await put(rig.wal, rowsOf(1, 2))
  rig.writer.start()
  void rig.writer.flush(2).catch(() => undefined)
  while (rig.failures.length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
  await rig.writer.stop()
  t.equal(rig.wal.waiting.length, 2)
  t.ok(rig.wal.openBatch !== null)
  await rig.wal.close()
})
