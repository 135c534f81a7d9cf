import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { ByteBuffer } from '../../../src/lib/byte-buffer.js'
import {
  DictColumn,
  FixedColumn,
  StringColumn,
  toNativeBlock,
} from '../../../src/clickhouse/native-writer.js'
import { encodeRecord, type LogRecord } from '../../../src/wal/record.js'
import { Wal } from '../../../src/wal/wal.js'
import { writeBesideLog } from '../../../src/wal/file.js'
import { Writer } from '../../../src/writer/writer.js'
import { quietLog } from '../../support/clickhouse.js'
import { seeded } from '../../support/landing.js'
import {
  createTestWal,
  RecordingTarget,
  refusalsOf,
  writerNotes,
  tempDir,
  WatchedBlockPool,
} from '../../support/pipeline.js'

interface TestRow {
  readonly id: number
  readonly isNew: boolean
  readonly n: number
  readonly message: string
}

const POISON = 'poison'

function blockOf(rows: readonly TestRow[]): Uint8Array {
  const id = new FixedColumn('id', 'UInt64', 8)
  const isNew = new FixedColumn('is_new', 'UInt8', 1)
  const n = new FixedColumn('n', 'Int32', 4)
  const ts = new FixedColumn('ts', "DateTime64(3, 'UTC')", 8)
  const source = new DictColumn('source')
  const message = new StringColumn('variables')
  for (const row of rows) {
    id.data.u64(row.id)
    isNew.data.u8(row.isNew ? 1 : 0)
    n.data.u32(row.n)
    ts.data.u64(1_700_000_000_000)
    source.push(`source ${row.id % 3}`)
    message.push(row.message)
  }
  const columns = [id, isNew, n, ts, source, message]
  return toNativeBlock(columns, rows.length, new ByteBuffer()).bytes
}

const EMPTY: LogRecord = {
  landing: null,
  landingRows: 0,
  dead: null,
  templates: [],
  registrations: [],
  command: null,
}

const recordOf = (rows: readonly TestRow[]): LogRecord => ({
  ...EMPTY,
  landing: blockOf(rows),
  landingRows: rows.length,
})

async function put(wal: Wal, records: readonly LogRecord[]): Promise<number> {
  const appended = records.map((record) => wal.append(encodeRecord(record)))
  await Promise.all(appended.map(({ durable }) => durable))
  return appended.at(-1)?.seq ?? 0
}

async function start(t: Test, target: RecordingTarget, dir = tempDir(t)) {
  return await startOn(await createTestWal(t, dir), target)
}

async function startOn(wal: Wal, target: RecordingTarget) {
  const found = refusalsOf(wal, target)
  const { notes, failures } = writerNotes()
  const writer = new Writer({ wal, target, quarantine: found.refusals, ...notes })
  const end = async (): Promise<void> => {
    await writer.stop()
    await wal.close()
  }
  return { ...found, wal, writer, failures, end }
}

/** The files of what is too long for a dead letter. */
const refusedFiles = (dir: string): readonly string[] =>
  readdirSync(dir).filter((name) => name.startsWith('refused-'))

const poisoned = (): RecordingTarget => {
  const target = new RecordingTarget()
  target.refuses = (row) => row['message'] === POISON
  return target
}

const one = (id: number, message = `message ${id}`): TestRow => ({ id, isNew: true, n: 1, message })
const ids = (target: RecordingTarget): readonly number[] =>
  target.stored('landing').map((row) => Number(row['id']))
const deadLetters = (target: RecordingTarget): readonly unknown[] =>
  target.stored('dead_letters').map((row) => JSON.parse(String(row['raw'])) as unknown)

void test('refused rows become dead letters, and all others are stored', async (t) => {
  const target = poisoned()
  const rig = await start(t, target)
  const many = Array.from({ length: 200 }, (_, i) => one(i + 1, i % 50 === 7 ? POISON : `m ${i}`))
  const last = await put(rig.wal, [
    recordOf([one(1001), one(1002)]),
    recordOf(many),
    recordOf([one(2001)]),
    { ...recordOf([one(3001, POISON)]), dead: null },
  ])
  rig.writer.start()
  await rig.writer.flush(last)
  const bad = many.filter(({ message }) => message === POISON).map(({ id }) => id)
  t.same(ids(target), [
    1001,
    1002,
    ...many.map(({ id }) => id).filter((id) => !bad.includes(id)),
    2001,
  ])
  t.equal(target.stored('dead_letters').length, 5)
  t.match(target.stored('dead_letters')[0], {
    reason: 'store_refused',
    source: `source ${8 % 3}`,
    detail: 'the store refused the message',
  })
  t.match(deadLetters(target)[0], { timestamp: '2023-11-14T22:13:20.000Z', message: POISON })
  t.equal(new Set(target.stored('dead_letters').map((row) => row['id'])).size, 5)
  t.same(rig.refused, [5])
  t.same(rig.failures, [], 'the batch is not retried')
  t.ok(target.trials < 120, `${target.trials} trials`)
  t.same(rig.wal.waiting, [])
  await rig.end()
})

void test('a row that counts several messages becomes as many dead letters', async (t) => {
  const target = poisoned()
  const rig = await start(t, target)
  const last = await put(rig.wal, [recordOf([{ ...one(1, POISON), n: 3 }, one(2)])])
  rig.writer.start()
  await rig.writer.flush(last)
  t.same(ids(target), [2])
  t.equal(deadLetters(target).length, 3)
  await rig.end()
})

void test('a repeat begins the event whose first row is refused', async (t) => {
  const target = new RecordingTarget()
  target.refuses = (row) => row['message'] === POISON && row['is_new'] === 1 && row['n'] === 9
  const rig = await start(t, target)
  const repeat = { ...one(5, POISON), isNew: false }
  const last = await put(rig.wal, [
    recordOf([one(4), { ...one(5, POISON), n: 9 }, repeat]),
    recordOf([repeat, one(6)]),
  ])
  rig.writer.start()
  await rig.writer.flush(last)
  t.same(
    target.stored('landing').map((row) => [Number(row['id']), row['is_new']]),
    [
      [4, 1],
      [5, 1],
      [5, 0],
      [6, 1],
    ],
  )
  await rig.end()
})

void test('a repeat begins the event whose first row is lost by damage of the WAL', async (t) => {
  const dir = tempDir(t)
  const first = await start(t, new RecordingTarget(), dir)
  const repeat = (id: number): TestRow => ({ ...one(id), isNew: false })
  await put(first.wal, [
    recordOf([one(1), one(2)]),
    recordOf([repeat(1), one(3), repeat(1)]),
    recordOf([repeat(2), repeat(3), repeat(1)]),
  ])
  await first.end()
  const [segment = ''] = readdirSync(dir).filter((name) => name.endsWith('.log'))
  const bytes = readFileSync(join(dir, segment))
  const at = bytes.indexOf('message 2')
  bytes.writeUInt8((bytes[at] ?? 0) ^ 1, at)
  writeFileSync(join(dir, segment), bytes)

  const begun = (target: RecordingTarget) =>
    target.stored('landing').map((row) => [Number(row['id']), row['is_new']])
  const wanted = [
    [1, 1],
    [3, 1],
    [1, 0],
    [2, 1],
    [3, 0],
    [1, 0],
  ]
  const damage: unknown[] = []
  const open = () =>
    Wal.open({
      dir,
      maxBytes: 1e9,
      cacheBytes: 1e6,
      blockPool: new WatchedBlockPool(),
      keepOnceKeysMs: 0,
      log: { ...quietLog, error: (report) => damage.push(report) },
    })
  t.comment(
    'an attempt that is stored without an answer leaves the batch unchanged for the next one',
  )
  const target = new RecordingTarget()
  const cutOff = await startOn(await open(), target)
  const { writer, wal } = cutOff
  wal.done = () => Promise.reject(new Error('gone'))
  writer.start()
  while (cutOff.failures.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  await cutOff.end()
  t.equal(damage.length, 1)
  t.same(begun(target), wanted)
  const again = await startOn(await open(), target)
  again.writer.start()
  await again.writer.flush(3)
  await again.end()
  t.equal(new Set(target.inserts.map(({ token }) => token)).size, 1, 'one token')
  const [before, after] = target.inserts
  t.same(before?.rows, after?.rows, 'and the same rows')
})

void test('a repeat of a stored event stays a repeat after damage', async (t) => {
  const dir = tempDir(t)
  const target = new RecordingTarget()
  const first = await start(t, target, dir)
  first.writer.start()
  await first.writer.flush(await put(first.wal, [recordOf([one(1)])]))
  await first.writer.stop()
  await put(first.wal, [recordOf([one(2)]), recordOf([{ ...one(1), isNew: false }])])
  await first.wal.close()
  const [segment = ''] = readdirSync(dir).filter((name) => name.endsWith('.log'))
  const bytes = readFileSync(join(dir, segment))
  const at = bytes.indexOf('message 2')
  bytes.writeUInt8((bytes[at] ?? 0) ^ 1, at)
  writeFileSync(join(dir, segment), bytes)
  const second = await startOn(
    await Wal.open({
      dir,
      maxBytes: 1e9,
      cacheBytes: 1e6,
      blockPool: new WatchedBlockPool(),
      keepOnceKeysMs: 0,
      log: quietLog,
    }),
    target,
  )
  second.writer.start()
  await second.writer.flush(3)
  t.same(
    target.stored('landing').map((row) => [Number(row['id']), row['is_new']]),
    [
      [1, 1],
      [1, 0],
    ],
  )
  await second.end()
})

void test('an unreadable block becomes dead letters, and its bytes are written to a file', async (t) => {
  const target = poisoned()
  const dir = tempDir(t)
  const rig = await start(t, target, dir)
  const broken = Buffer.concat([blockOf([one(7), one(8)]), Buffer.from('behind')])
  const last = await put(rig.wal, [
    recordOf([one(1)]),
    { ...EMPTY, landing: broken, landingRows: 2 },
    recordOf([one(2)]),
  ])
  rig.writer.start()
  await rig.writer.flush(last)
  t.same(ids(target), [1, 2])
  const [name = ''] = refusedFiles(dir)
  t.same(readFileSync(join(dir, name)), broken)
  const dead = target.stored('dead_letters')
  t.equal(dead.length, 2)
  t.match(dead[0], { reason: 'store_refused', raw: '' })
  t.ok(String(dead[0]?.['detail']).includes(name), 'the dead letter names the file')
  await rig.end()

  await writeBesideLog(dir, 'kept.native', [broken, broken])
  t.same(readFileSync(join(dir, 'kept.native')), Buffer.concat([broken, broken]))
  const reopened = await createTestWal(t, dir)
  t.ok(readdirSync(dir).includes('kept.native'), 'the WAL does not delete it')
  await reopened.close()
})

void test('a message too long for a dead letter is written to a file', async (t) => {
  const target = new RecordingTarget()
  const long = 'x'.repeat(70_000)
  target.refuses = (row) => row['message'] === long
  const dir = tempDir(t)
  const rig = await start(t, target, dir)
  const last = await put(rig.wal, [recordOf([one(1, long), one(2)])])
  rig.writer.start()
  await rig.writer.flush(last)
  t.same(ids(target), [2])
  const files = refusedFiles(dir)
  t.equal(files.length, 1)
  t.ok(readFileSync(join(dir, files[0] ?? '')).includes(long))
  await rig.end()
})

void test('the rows are not sent again when only dead letters are refused', async (t) => {
  const target = new RecordingTarget()
  target.refuses = (row) => row['message'] === POISON || row['id'] === 77n
  const rig = await start(t, target)
  const dead = blockOf([one(76), one(77), one(78)])
  const last = await put(rig.wal, [
    { ...recordOf([one(1), one(2, POISON)]), dead },
    recordOf([one(3)]),
  ])
  rig.writer.start()
  await rig.writer.flush(last)
  t.same(ids(target), [1, 3])
  t.equal(target.inserts.filter(({ table }) => table === 'landing').length, 1)
  const stored = target.stored('dead_letters')
  t.equal(stored.filter((row) => row['reason'] === 'store_refused').length, 2)
  t.same(
    stored.filter((row) => row['reason'] === undefined).map((row) => row['id']),
    [76n, 78n],
  )
  await rig.end()
})

void test('a batch whose rows are all accepted by themselves is retried unchanged', async (t) => {
  const target = new RecordingTarget()
  let faults = 2
  target.fault = (call) =>
    call.startsWith('insert') && faults-- > 0
      ? Object.assign(new Error('a view is at fault'), { isDataError: true })
      : null
  const rig = await start(t, target)
  const last = await put(rig.wal, [recordOf([one(1), one(2)])])
  rig.writer.start()
  await rig.writer.flush(last)
  t.same(ids(target), [1, 2])
  t.equal(rig.failures.length, 2)
  const tokens = target.calls.filter((call) => call.startsWith('insert'))
  t.equal(new Set(tokens).size, 1, 'under its own token')
  t.same(target.stored('dead_letters'), [])
  await rig.end()
})

void test('a batch of which a row is stored is not amended', async (t) => {
  const target = poisoned()
  const rig = await start(t, target)
  // A view may have stored a row although the insert failed.
  target.inserts.push({ table: 'landing', token: 'of then', rows: [{ id: 1n, is_new: 1 }] })
  const last = await put(rig.wal, [recordOf([one(1), one(2, POISON)])])
  const stop = new AbortController()
  rig.writer.start()
  const flushed = rig.writer.flush(last, stop.signal)
  while (rig.failures.length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
  stop.abort()
  await t.rejects(flushed)
  t.same(target.stored('dead_letters'), [])
  await rig.end()
})

void test('trials are bounded, and the undecided rows become dead letters too', async (t) => {
  const target = poisoned()
  const rig = await start(t, target)
  const rows = Array.from({ length: 4000 }, (_, i) => one(i + 1, i === 3999 ? 'good' : POISON))
  const last = await put(rig.wal, [recordOf(rows)])
  rig.writer.start()
  await rig.writer.flush(last)
  t.ok(target.trials < 1_600, `${target.trials} trials`)
  t.equal(ids(target).length + deadLetters(target).length, 4000)
  await rig.end()
})

void test('a kill between any two steps loses nothing and doubles nothing', async (t) => {
  const seed = Number(process.env['SEED'] ?? Date.now() % 100_000)
  t.comment(`seed ${seed}`)
  const random = seeded(seed)
  for (let steps = 1; steps < 60; steps++) {
    const dir = tempDir(t)
    const target = poisoned()
    let nextId = 1
    const rows = (count: number): TestRow[] =>
      Array.from({ length: count }, () => {
        const id = nextId++
        return one(id, random() < 0.2 ? POISON : `m ${id}`)
      })
    const all = [rows(5), rows(1), rows(8)]
    const first = await start(t, target, dir)
    await put(first.wal, all.map(recordOf))
    let left = steps
    // From here on the process does nothing more; the last step may or may not have reached the store.
    const late = random() < 0.5
    const insert = target.insert.bind(target)
    target.insert = async (...args) => {
      if (late || left > 1) await insert(...args)
      if (--left <= 0) throw new Error('killed')
    }
    const wouldTake = target.wouldTake.bind(target)
    target.wouldTake = async (...args) => {
      if (--left <= 0) throw new Error('killed')
      return await wouldTake(...args)
    }
    first.writer.start()
    void first.writer.flush(3).catch(() => undefined)
    while (first.failures.length === 0 && first.wal.waiting.length > 0)
      await new Promise((resolve) => setTimeout(resolve, 1))
    await first.end()
    target.insert = insert
    target.wouldTake = wouldTake
    const second = await start(t, target, dir)
    second.writer.start()
    await second.writer.flush(Number.MAX_SAFE_INTEGER)
    const good = all.flat().filter(({ message }) => message !== POISON)
    const bad = all.flat().length - good.length
    t.same(
      [...ids(target)].sort((a, b) => a - b),
      good.map(({ id }) => id),
      `${steps} steps`,
    )
    t.equal(deadLetters(target).length, bad, `${steps} steps`)
    await second.end()
  }
})
