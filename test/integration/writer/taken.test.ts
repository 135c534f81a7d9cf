import { test, type Test } from 'tap'
import { encodeRecord } from '../../../src/wal/record.js'
import { createBatchStore } from '../../../src/writer/batch-store.js'
import { SURELY_KNOWN } from '../../../src/writer/taken.js'
import { Writer, type BatchTarget } from '../../../src/writer/writer.js'
import { startBackend } from '../../support/cluster.js'
import { openRig, STEPS, type Rig } from '../../support/ingestion.js'
import { createTestWal, tempDir } from '../../support/pipeline.js'
import { refusableEntry, type RefusableRow } from '../../support/refused-rows.js'

const DEDUPLICATED = [
  'events',
  'event_occurrences',
  ...Object.keys(STEPS),
  'template_stats',
  'template_totals',
  'host_stats',
]

const rowsOf = (name: string, firstId: number): readonly RefusableRow[] =>
  Array.from({ length: 60 }, (_, i) => ({
    id: firstId + (i % 40),
    isNew: i < 40,
    n: 1,
    tsMs: Date.now(),
    source: `${name}-${i % 10}`,
    message: `message ${i} of ${name}`,
    severity: 'INFO',
  }))

/** An instance in a directory: it writes what its WAL holds. */
async function instance(t: Test, rig: Rig, dir: string, after: () => void) {
  const wal = await createTestWal(t, dir)
  const batches = createBatchStore(rig.store)
  const target: BatchTarget = {
    newToken: batches.newToken,
    taken: batches.taken,
    storedAmong: batches.storedAmong,
    templates: async () => undefined,
    register: async () => undefined,
    execute: async () => null,
    insert: async (...args) => {
      await batches.insert(...args)
      after()
    },
  }
  const writer = new Writer({
    wal,
    target,
    quarantine: { amend: async () => false },
    onWritten: () => undefined,
    onFailure: () => undefined,
  })
  writer.start()
  return {
    wal,
    write: async (name: string, firstId: number): Promise<number> => {
      const { seq, durable } = wal.append(encodeRecord(refusableEntry(rowsOf(name, firstId))))
      await durable
      writer.notify()
      return seq
    },
    flush: (seq: number) => writer.flush(seq, AbortSignal.timeout(20_000)),
    end: async () => {
      await writer.stop()
      await wal.close()
    },
  }
}

async function counts(rig: Rig, name: string): Promise<unknown> {
  const like = `startsWith(source, '${name}')`
  const [row] = await rig.rows(`SELECT
    (SELECT count() FROM events WHERE ${like}) AS events,
    (SELECT sum(n) FROM event_occurrences WHERE ${like}) AS repeats,
    ${[...Object.keys(STEPS), 'template_stats', 'template_totals'].map((table) => `(SELECT sum(p1 + p2 + p3 + p4) FROM ${table} WHERE ${like}) AS ${table}`).join(', ')}`)
  return row
}

function once(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => undefined
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}

const ONCE = {
  events: 40,
  repeats: 20,
  series_1s: 60,
  series_1m: 60,
  series_1h: 60,
  series_1d: 60,
  template_stats: 60,
  template_totals: 60,
}

void test('a batch is stored once, however many others were inserted meanwhile', async (t) => {
  const server = await startBackend()
  t.teardown(() => server.stop())
  const rig = await openRig(t, server)
  // ClickHouse remembers two tokens of a table instead of ten thousand.
  for (const table of DEDUPLICATED)
    await rig.store.change(
      `ALTER TABLE ${table} MODIFY SETTING non_replicated_deduplication_window = 2`,
    )
  const dir = tempDir(t)
  const taken = once()
  const gone = await instance(t, rig, dir, () => {
    taken.resolve()
    throw new Error('the reply is lost')
  })
  const seq = await gone.write('away', 1_000)
  await taken.promise
  await gone.end()
  t.same(await counts(rig, 'away'), ONCE, 'ClickHouse took it, and the instance does not know')

  const others = await instance(t, rig, tempDir(t), () => undefined)
  for (let i = 0; i < 4; i++) await others.flush(await others.write(`other${i}`, 2_000 + i * 100))
  await others.end()
  await rig.store.change(
    `INSERT INTO batches (token) SELECT concat('f', toString(number)) FROM numbers(${SURELY_KNOWN})`,
  )

  const back = await instance(t, rig, dir, () => undefined)
  t.equal(back.wal.waiting.length, 1)
  await back.flush(seq)
  t.same(await counts(rig, 'away'), ONCE, 'it is back, and nothing is counted twice')
  await back.flush(await back.write('next', 3_000))
  t.same(await counts(rig, 'next'), ONCE, 'what comes next is stored')
  await back.end()
})
