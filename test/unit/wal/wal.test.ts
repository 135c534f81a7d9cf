import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  array,
  assert,
  asyncProperty,
  constantFrom,
  integer,
  nat,
  oneof,
  record,
  uint8Array,
} from 'fast-check'
import { test, type Test } from 'tap'
import type { RecordedBatch } from '../../../src/wal/recorded-batch.js'
import { Wal, type WalOptions } from '../../../src/wal/wal.js'
import { fillDisk } from '../../support/disk.js'
import { WatchedBlockPool } from '../../support/pipeline.js'

interface Opened {
  readonly wal: Wal
  readonly damage: readonly object[]
}

async function openWal(dir: string, options: Partial<WalOptions> = {}): Promise<Opened> {
  const damage: object[] = []
  const wal = await Wal.open({
    dir,
    maxBytes: 1024 ** 3,
    cacheBytes: 1024 ** 2,
    blockPool: new WatchedBlockPool(),
    keepOnceKeysMs: 0,
    log: { error: (report) => damage.push(report), warn: () => undefined },
    ...options,
  })
  return { wal, damage }
}

function tempDir(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'wal-test-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

const bytesOf = (text: string): readonly Uint8Array[] => [Buffer.from(text)]

async function contents(wal: Wal): Promise<readonly string[]> {
  const texts: string[] = []
  for (const record of wal.waiting)
    texts.push(`${record.seq} ${Buffer.concat([...((await wal.read(record)) ?? [])]).toString()}`)
  return texts
}

const segmentsOf = (dir: string): readonly string[] =>
  readdirSync(dir)
    .filter((name) => name.endsWith('.log'))
    .sort()

/** The only segment that is not empty. */
function filledSegment(dir: string): string {
  const [name] = segmentsOf(dir).filter((segment) => statSync(join(dir, segment)).size > 0)
  if (name === undefined) throw new Error('no segment was written')
  return join(dir, name)
}

void test('records stay in the order of their appends, cached or not', async (t) => {
  const { wal } = await openWal(tempDir(t), { cacheBytes: 20 })
  const appended = Array.from({ length: 50 }, (_, i) => wal.append(bytesOf(`record ${i}`)))
  t.same(
    appended.map(({ seq }) => seq),
    Array.from({ length: 50 }, (_, i) => i + 1),
  )
  t.same(wal.waiting, [], 'a record is not visible before it is on disk')
  await Promise.all(appended.map(({ durable }) => durable))
  t.same(
    await contents(wal),
    appended.map(({ seq }, i) => `${seq} record ${i}`),
  )
  t.equal(
    wal.bytes,
    appended.reduce((sum, _, i) => sum + `record ${i}`.length, 0),
  )
  await wal.close()
})

void test('a record of several parts is read back whole, from memory and from disk', async (t) => {
  const dir = tempDir(t)
  for (const cacheBytes of [0, 1000]) {
    const { wal } = await openWal(join(dir, `${cacheBytes}`), { cacheBytes })
    await wal.append([Buffer.from('one '), Buffer.alloc(0), Buffer.from('two')]).durable
    t.same(await contents(wal), ['1 one two'])
    await wal.close()
  }
})

void test('a record beyond the cache is read back when it is loaded, and stays until it is done', async (t) => {
  const blockPool = new WatchedBlockPool()
  const { wal } = await openWal(tempDir(t), { cacheBytes: 12, blockPool })
  const texts = ['first', 'second', 'third', 'fourth']
  const released: string[] = []
  for (const text of texts) await wal.append(bytesOf(text), () => void released.push(text)).durable
  t.same(released, ['third', 'fourth'], 'records beyond the cache are on disk only')
  const loaded = new Map<string, readonly Uint8Array[]>()
  for (const [i, record] of wal.waiting.entries())
    loaded.set(texts[i] ?? '', (await wal.load(record)) ?? [])
  t.equal(blockPool.inUse.size, 2)
  await wal.append(bytesOf('x')).durable
  for (const [text, parts] of loaded) t.equal(Buffer.concat([...parts]).toString(), text)
  const [, , third] = wal.waiting
  if (third === undefined) return t.fail('no third record')
  t.equal(await wal.load(third), loaded.get('third'), 'it is in memory already')
  await wal.done(3)
  t.same(released, ['third', 'fourth', 'first', 'second'])
  t.equal(blockPool.inUse.size, 1)
  await wal.done(5)
  t.equal(blockPool.inUse.size, 0)
  return wal.close()
})

void test('records that are not done are there after a restart, and sequences go on', async (t) => {
  const dir = tempDir(t)
  const first = await openWal(dir)
  for (const text of ['a', 'b', 'c']) await first.wal.append(bytesOf(text)).durable
  await first.wal.done(1)
  // The log is not closed, as by a killed process.
  const second = await openWal(dir)
  t.same(await contents(second.wal), ['2 b', '3 c'])
  t.same(second.damage, [])
  t.equal(second.wal.append(bytesOf('d')).seq, 4)
  await second.wal.close()
  await first.wal.close()
  const third = await openWal(dir)
  t.same(await contents(third.wal), ['2 b', '3 c', '4 d'])
  await third.wal.close()
})

void test('a recorded batch is open with its token until it is done', async (t) => {
  const dir = tempDir(t)
  const batch = { from: 1, to: 2, token: 'token-1', amendment: null }
  const first = await openWal(dir)
  for (const text of ['a', 'b', 'c']) await first.wal.append(bytesOf(text)).durable
  await first.wal.recordBatch(batch)
  await first.wal.close()
  const second = await openWal(dir)
  t.same(second.wal.openBatch, batch)
  await second.wal.append(bytesOf('d')).durable
  await second.wal.close()
  const third = await openWal(dir)
  t.same(third.wal.openBatch, batch, 'also after more appends')
  await third.wal.done(2)
  t.equal(third.wal.openBatch, null)
  await third.wal.close()
  const fourth = await openWal(dir)
  t.equal(fourth.wal.openBatch, null)
  t.same(await contents(fourth.wal), ['3 c', '4 d'])
  await fourth.wal.close()
})

void test('a tail torn at any byte loses no other record', async (t) => {
  const dir = tempDir(t)
  const first = await openWal(dir)
  await first.wal.append(bytesOf('first')).durable
  await first.wal.append(bytesOf('second')).durable
  const whole = statSync(filledSegment(dir)).size
  await first.wal.append(bytesOf('the last one')).durable
  await first.wal.close()
  const segment = filledSegment(dir)
  const bytes = readFileSync(segment)
  for (let length = whole; length < bytes.length; length++) {
    for (const name of segmentsOf(dir)) rmSync(join(dir, name))
    writeFileSync(segment, bytes.subarray(0, length))
    const { wal, damage } = await openWal(dir)
    t.same(await contents(wal), ['1 first', '2 second'], `torn at ${length}`)
    t.equal(damage.length, length === whole ? 0 : 1)
    const { seq, durable } = wal.append(bytesOf('after'))
    await durable
    await wal.close()
    const again = await openWal(dir)
    t.same(await contents(again.wal), ['1 first', '2 second', `${seq} after`])
    await again.wal.close()
  }
})

void test('a flipped byte loses the record that it is in and no other, and is reported', async (t) => {
  const dir = tempDir(t)
  const { wal: fresh } = await openWal(dir)
  const texts = ['alpha', 'beta', 'gamma', 'delta']
  for (const text of texts) await fresh.append(bytesOf(text)).durable
  await fresh.close()
  const segment = filledSegment(dir)
  const bytes = readFileSync(segment)
  const ends = texts.map((_, i) =>
    texts.slice(0, i + 1).reduce((sum, text) => sum + 21 + text.length, 0),
  )
  for (let at = 0; at < bytes.length; at++) {
    for (const name of segmentsOf(dir)) rmSync(join(dir, name))
    const flipped = Buffer.from(bytes)
    flipped[at] = (flipped[at] ?? 0) ^ 0x40
    writeFileSync(segment, flipped)
    const { wal, damage } = await openWal(dir)
    const lost = ends.findIndex((end) => at < end)
    const expected = texts.map((text, i) => `${i + 1} ${text}`).filter((_, i) => i !== lost)
    t.same(await contents(wal), expected, `byte ${at}`)
    const start = lost === 0 ? 0 : (ends[lost - 1] ?? 0)
    t.same(
      damage.map((report) => 'ranges' in report && report.ranges),
      [[`${start}+${(ends[lost] ?? 0) - start}`]],
    )
    await wal.close()
  }
})

void test('a byte that flips after the start is found when the record is read, and loses that record alone', async (t) => {
  const dir = tempDir(t)
  const { wal, damage } = await openWal(dir, { cacheBytes: 0 })
  for (const text of ['alpha', 'beta', 'gamma']) await wal.append(bytesOf(text)).durable
  const segment = filledSegment(dir)
  const bytes = readFileSync(segment)
  const at = bytes.indexOf('beta')
  bytes[at] = (bytes[at] ?? 0) ^ 1
  writeFileSync(segment, bytes)
  const [, second] = wal.waiting
  if (second === undefined) return t.fail('no second record')
  t.equal(await wal.load(second), null)
  t.same(await contents(wal), ['1 alpha', '3 gamma'])
  t.equal(wal.bytes, 'alphagamma'.length)
  t.same(damage, [{ segment: basename(segment), ranges: [`26+${21 + 4}`] }])
  t.equal(wal.damagedBytes, 25)
  return wal.close()
})

void test('one of the two frames of a batch is enough, and no sequence of its records is used again', async (t) => {
  const dir = tempDir(t)
  const batch = { from: 1, to: 2, token: 'token-1', amendment: null }
  const { wal: fresh } = await openWal(dir)
  for (const text of ['a', 'b']) await fresh.append(bytesOf(text)).durable
  await fresh.recordBatch(batch)
  await fresh.close()
  const segment = filledSegment(dir)
  const bytes = readFileSync(segment)
  const frames = [bytes.indexOf('token-1'), bytes.lastIndexOf('token-1')]
  t.not(frames[0], frames[1])
  for (const at of frames) {
    for (const name of segmentsOf(dir)) rmSync(join(dir, name))
    const flipped = Buffer.from(bytes)
    flipped[at] = (flipped[at] ?? 0) ^ 1
    // The last record of the batch is damaged as well.
    flipped[43] = (flipped[43] ?? 0) ^ 1
    writeFileSync(segment, flipped)
    const { wal } = await openWal(dir)
    t.same(await contents(wal), ['1 a'])
    t.same(wal.openBatch, batch)
    t.equal(wal.append(bytesOf('new')).seq, 3)
    await wal.close()
  }
})

void test('a text with the bytes of a frame is not read as a frame after damage', async (t) => {
  const dir = tempDir(t)
  const { wal: other } = await openWal(join(dir, 'other'))
  for (const text of ['x', 'y', 'z']) await other.append(bytesOf(text)).durable
  await other.done(3)
  await other.close()
  // A client can send whole frames as a message.
  const forged = readFileSync(filledSegment(join(dir, 'other')))
  const own = join(dir, 'own')
  const { wal: first } = await openWal(own)
  await first.append(bytesOf('kept')).durable
  await first.append([forged]).durable
  await first.close()
  const segment = filledSegment(own)
  const bytes = readFileSync(segment)
  bytes[30] = (bytes[30] ?? 0) ^ 1
  for (const name of segmentsOf(own)) rmSync(join(own, name))
  writeFileSync(segment, bytes)
  const { wal, damage } = await openWal(own)
  t.same(await contents(wal), ['1 kept'])
  t.equal(damage.length, 1)
  await wal.close()
})

void test('other files in the directory stay as they are', async (t) => {
  const dir = tempDir(t)
  for (const name of ['notes.txt', '0000000001.log', 'x.log'])
    writeFileSync(join(dir, name), 'mine')
  const { wal, damage } = await openWal(dir)
  t.same([await contents(wal), damage], [[], []])
  t.equal(readFileSync(join(dir, '0000000001.log'), 'utf8'), 'mine')
  await wal.close()
})

void test('a segment is deleted when all its records are done, and not before', async (t) => {
  const dir = tempDir(t)
  const { wal } = await openWal(dir, { cacheBytes: 0 })
  const big = Buffer.alloc(40 * 1024 * 1024, 'x')
  for (let i = 0; i < 4; i++) await wal.append([big]).durable
  t.equal(segmentsOf(dir).length, 2, 'a new one is begun above 64 MiB')
  await wal.done(1)
  t.equal(segmentsOf(dir).length, 3, 'the `done` frame itself needed another')
  await wal.done(2)
  t.equal(segmentsOf(dir).length, 2)
  t.same(
    wal.waiting.map(({ seq }) => seq),
    [3, 4],
  )
  await wal.done(4)
  t.equal(wal.bytes, 0)
  await wal.close()
  const again = await openWal(dir)
  t.same(again.wal.waiting, [])
  t.equal(segmentsOf(dir).length, 1)
  t.equal(statSync(join(dir, segmentsOf(dir)[0] ?? '')).size, 0)
  await again.wal.close()
})

void test('a record with names is found after restarts though it is done, until its time is over', async (t) => {
  const dir = tempDir(t)
  const keepOnceKeysMs = 60_000
  const doneOf = async (wal: Wal): Promise<readonly string[]> => {
    const texts: string[] = []
    for await (const parts of wal.readDone()) texts.push(Buffer.concat([...parts]).toString())
    return texts
  }
  const large = (): readonly Uint8Array[] => [Buffer.alloc(65 * 1024 * 1024)]
  const { wal: first } = await openWal(dir, { keepOnceKeysMs })
  const named = first.append(bytesOf('named'), null, true)
  await named.durable
  await first.done(named.seq)
  for (const payload of [large(), bytesOf('the next segment')]) {
    const { seq, durable } = first.append(payload)
    await durable
    await first.done(seq)
  }
  await first.close()

  for (let restart = 0; restart < 2; restart++) {
    const { wal } = await openWal(dir, { keepOnceKeysMs })
    t.same(await contents(wal), [], 'nothing waits')
    const [found, ...others] = await doneOf(wal)
    t.equal(found, 'named')
    t.equal(others.length, 2)
    t.same(await doneOf(wal), [], 'it is read once')
    t.ok(Math.abs(Date.now() - wal.writtenAtMs) < keepOnceKeysMs)
    await wal.close()
  }

  const { wal: last } = await openWal(dir)
  t.same(await doneOf(last), [])
  t.equal(segmentsOf(dir).length, 1)
  await last.close()
})

void test('many segments with names do not stay', async (t) => {
  const dir = tempDir(t)
  const { wal } = await openWal(dir, { keepOnceKeysMs: 60_000 })
  for (let segment = 0; segment < 10; segment++) {
    const { seq, durable } = wal.append([Buffer.alloc(65 * 1024 * 1024)], null, true)
    await durable
    await wal.done(seq)
  }
  t.equal(segmentsOf(dir).length, 8)
  await wal.close()
})

void test('sequences may begin at 1 again when no segment is left', async (t) => {
  const dir = tempDir(t)
  for (let round = 0; round < 3; round++) {
    const { wal, damage } = await openWal(dir)
    t.same([wal.waiting, wal.openBatch, damage], [[], null, []])
    const { seq, durable } = wal.append(bytesOf(`round ${round}`))
    await durable
    await wal.recordBatch({ from: seq, to: seq, token: `token ${round}`, amendment: null })
    await wal.close()
    const second = await openWal(dir)
    t.same(await contents(second.wal), [`${seq} round ${round}`])
    t.equal(second.wal.openBatch?.token, `token ${round}`)
    await second.wal.done(seq)
    await second.wal.close()
    // An empty start in between deletes the segment with the last sequence.
    await (await openWal(dir)).wal.close()
  }
})

void test('it is full at its limit until records are done', async (t) => {
  const { wal } = await openWal(tempDir(t), { maxBytes: 10 })
  await wal.append(bytesOf('12345')).durable
  t.equal(wal.isFull(), false)
  await wal.append(bytesOf('67890')).durable
  t.equal(wal.isFull(), true)
  await wal.done(1)
  t.equal(wal.isFull(), false)
  await wal.close()
})

void test('the time to finish a record does not grow with the number of waiting records', async (t) => {
  const { wal } = await openWal(tempDir(t))
  const last = Array.from({ length: 200_000 }, () => wal.append([])).at(-1)
  await last?.durable
  t.equal(wal.waiting.length, 200_000)
  for (let seq = 1000; seq <= 200_000; seq += 1000) {
    const first = wal.waiting[0]
    if (first === undefined) return t.fail('records are missing')
    await wal.read(first)
    await wal.done(seq)
  }
  t.same(wal.waiting, [])
  return wal.close()
})

void test('a full disk refuses the queued writes, and writing goes on when there is space', async (t) => {
  const dir = tempDir(t)
  const { wal } = await openWal(dir)
  await wal.append(bytesOf('before')).durable
  t.equal(wal.failures, 0)
  const disk = await fillDisk(t)
  const refused = ['a', 'b'].map((text) => wal.append(bytesOf(text)))
  // This one is appended while the first two are being written.
  const later = new Promise((resolve) => setImmediate(resolve)).then(() => wal.append(bytesOf('c')))
  for (const { durable } of refused) await t.rejects(durable, { code: 'ENOSPC' })
  await t.rejects((await later).durable, { code: 'ENOSPC' })
  await t.rejects(wal.recordBatch({ from: 1, to: 1, token: 'x', amendment: null }), {
    code: 'ENOSPC',
  })
  t.equal(wal.openBatch, null, 'a batch that is not recorded is not open')
  t.match(wal.fault, { message: /ENOSPC/ })
  t.ok(wal.failures > 0)
  disk.free()
  const { seq, durable } = wal.append(bytesOf('after'))
  await durable
  t.equal(wal.fault, null)
  const expected = ['1 before', `${seq} after`]
  t.same(await contents(wal), expected)
  await wal.close()
  const again = await openWal(dir)
  t.same(await contents(again.wal), expected)
  t.same(again.damage, [])
  await again.wal.close()
})

void test('a full disk is told, and what ends it is noticed without an append', async (t) => {
  const told: string[] = []
  const { wal } = await openWal(tempDir(t), {
    log: { error: () => undefined, warn: (_, text) => told.push(text) },
  })
  t.equal(wal.isDiskFull, false)
  const disk = await fillDisk(t)
  await t.rejects(wal.append(bytesOf('lost')).durable, { code: 'ENOSPC' })
  while (told.length === 0) await sleep(10)
  t.equal(wal.isDiskFull, true)
  disk.free()
  while (wal.isDiskFull) await sleep(10)
  await wal.close()
})

void test('a failure is counted before the append is rejected', async (t) => {
  const { wal } = await openWal(tempDir(t))
  const disk = await fillDisk(t)
  const seen = await wal.append(bytesOf('a')).durable.catch(() => wal.failures)
  t.equal(seen, 1)
  disk.free()
  await wal.close()
})

void test('after a torn write that cannot be truncated the next write begins a new segment', async (t) => {
  const dir = tempDir(t)
  const { wal } = await openWal(dir)
  await wal.append(bytesOf('before')).durable
  const disk = await fillDisk(t, 'for good')
  await t.rejects(wal.append(bytesOf('lost')).durable, { code: 'ENOSPC' })
  disk.free()
  const { seq, durable } = wal.append(bytesOf('after'))
  await durable
  t.equal(segmentsOf(dir).length, 2)
  await wal.close()
  const again = await openWal(dir)
  t.same(await contents(again.wal), ['1 before', `${seq} after`])
  t.equal(again.damage.length, 1)
  await again.wal.close()
})

void test('a write right after the answer to the previous one is written', async (t) => {
  const { wal } = await openWal(tempDir(t))
  for (let i = 1; i <= 50; i++) {
    await wal.append(bytesOf('x')).durable
    await wal.recordBatch({ from: i, to: i, token: `${i}`, amendment: null })
    await wal.done(i)
  }
  t.same(wal.waiting, [])
  await wal.close()
})

type Step =
  | { readonly kind: 'append'; readonly bytes: Uint8Array }
  | { readonly kind: 'batch' | 'done' | 'reopen' | 'crash'; readonly share: number }

void test('after any run of appends, batches and restarts exactly the records that are not done wait', async (t) => {
  const steps = array(
    oneof(
      {
        weight: 4,
        arbitrary: record({
          kind: constantFrom('append' as const),
          bytes: uint8Array({ maxLength: 90 }),
        }),
      },
      {
        weight: 3,
        arbitrary: record({
          kind: constantFrom(
            'batch' as const,
            'done' as const,
            'reopen' as const,
            'crash' as const,
          ),
          share: integer({ min: 0, max: 100 }),
        }),
      },
    ),
    { maxLength: 40 },
  )
  let runs = 0
  const root = tempDir(t)
  await assert(
    asyncProperty(steps, nat(200), async (all: readonly Step[], cacheBytes) => {
      const dir = join(root, `${runs++}`)
      let { wal } = await openWal(dir, { cacheBytes })
      let model: { seq: number; hex: string }[] = []
      let batch: RecordedBatch | null = null
      for (const step of all) {
        const first = model[0]
        const pick = (share: number): number =>
          model[Math.min(model.length - 1, Math.floor((share / 100) * model.length))]?.seq ?? 0
        if (step.kind === 'append') {
          const { seq, durable } = wal.append([step.bytes])
          await durable
          model.push({ seq, hex: Buffer.from(step.bytes).toString('hex') })
        } else if (step.kind === 'batch' && first !== undefined && batch === null) {
          const amendment = step.share % 2 === 0 ? null : Buffer.from(`\0rest ${runs}\0`)
          batch = {
            from: first.seq,
            to: pick(step.share),
            token: `t${runs}-${first.seq}`,
            amendment,
          }
          await wal.recordBatch(batch)
        } else if (step.kind === 'done' && batch !== null) {
          await wal.done(batch.to)
          const { to } = batch
          model = model.filter(({ seq }) => seq > to)
          batch = null
        } else if (step.kind === 'reopen' || step.kind === 'crash') {
          const old = wal
          if (step.kind === 'reopen') await old.close()
          wal = (await openWal(dir, { cacheBytes })).wal
          if (step.kind === 'crash') await old.close()
        }
        const stored: { seq: number; hex: string }[] = []
        for (const record of wal.waiting) {
          const parts = await (runs % 2 === 0 ? wal.load(record) : wal.read(record))
          const read = Buffer.concat([...(parts ?? [])])
          stored.push({ seq: record.seq, hex: read.toString('hex') })
        }
        if (JSON.stringify(stored) !== JSON.stringify(model)) throw new Error('other records')
        if (JSON.stringify(wal.openBatch) !== JSON.stringify(batch))
          throw new Error('another batch')
      }
      await wal.close()
    }),
    { numRuns: 40 },
  )
})
