import { test, type Test } from 'tap'
import { encodeRecord } from '../../../src/wal/record.js'
import { createBatchStore } from '../../../src/writer/batch-store.js'
import { SURELY_KNOWN_TOKENS } from '../../../src/writer/taken.js'
import { Writer, type BatchTarget } from '../../../src/writer/writer.js'
import { startBackend } from '../../support/cluster.js'
import { openRig, STEPS, type Rig } from '../../support/ingestion.js'
import { createTestWal, tempDir, writerNotes } from '../../support/pipeline.js'
import { refusableEntry, type RefusableRow } from '../../support/refused-rows.js'

const DEDUPLICATED = [
  'events',
  'event_occurrences',
  ...Object.keys(STEPS),
  'template_stats',
  'template_totals',
  'host_stats',
]

/** 60 rows; without `only`, 40 are new and 20 repeats. */
const rowsOf = (name: string, firstId: number, only?: 'new' | 'repeats'): readonly RefusableRow[] =>
  Array.from({ length: 60 }, (_, i) => ({
    id: firstId + (only === undefined ? i % 40 : i),
    isNew: only === undefined ? i < 40 : only === 'new',
    n: 1,
    tsMs: Date.now(),
    source: `${name}-${i % 10}`,
    message: `message ${i} of ${name}`,
    severity: 'INFO',
  }))

/** An instance in a directory: it writes what its WAL holds. */
async function instance(
  t: Test,
  rig: Rig,
  dir: string,
  after: (...insert: Parameters<BatchTarget['insert']>) => void,
) {
  const wal = await createTestWal(t, dir)
  const batches = createBatchStore(rig.store)
  const target: BatchTarget = {
    newToken: batches.newToken,
    taken: batches.taken,
    storedAmong: batches.storedAmong,
    templates: async () => undefined,
    register: async () => undefined,
    registerAgain: async () => undefined,
    execute: async () => null,
    insert: async (...args) => {
      await batches.insert(...args)
      after(...args)
    },
  }
  const writer = new Writer({
    wal,
    target,
    quarantine: { amend: async () => false },
    ...writerNotes().notes,
  })
  writer.start()
  return {
    wal,
    write: async (...rows: Parameters<typeof rowsOf>): Promise<number> => {
      const { seq, durable } = wal.append(encodeRecord(refusableEntry(rowsOf(...rows))))
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
  // ClickHouse remembers three tokens of a table instead of ten thousand.
  for (const table of DEDUPLICATED)
    await rig.store.change(
      `ALTER TABLE ${table} MODIFY SETTING non_replicated_deduplication_window = 3`,
    )
  const dir = tempDir(t)
  const taken = once()
  const offered: Parameters<BatchTarget['insert']>[] = []
  const gone = await instance(t, rig, dir, (...insert) => {
    offered.push(insert)
    taken.resolve()
    throw new Error('the reply is lost')
  })
  const seq = await gone.write('away', 1_000)
  await taken.promise
  await gone.end()
  t.same(await counts(rig, 'away'), ONCE, 'ClickHouse took it, and the instance does not know')

  // The rollups get a part of each batch and forget the first one; events and event_occurrences get two each, and know it.
  const others = await instance(t, rig, tempDir(t), () => undefined)
  for (const [i, only] of (['new', 'repeats', 'new', 'repeats'] as const).entries())
    await others.flush(await others.write(`other${i}`, 2_000 + i * 100, only))
  await others.end()
  await rig.store.change(
    `INSERT INTO batches (token) SELECT concat('f', toString(number)) FROM numbers(${SURELY_KNOWN_TOKENS})`,
  )

  const back = await instance(t, rig, dir, () => undefined)
  t.equal(back.wal.waiting.length, 1)
  await back.flush(seq)
  t.same(await counts(rig, 'away'), ONCE, 'it is back, and nothing is counted twice')

  // What would happen without the table of batches.
  for (const [table, parts, token] of offered) await rig.store.insertNative(table, parts, token)
  const doubled = Object.fromEntries(
    Object.entries(ONCE).map(([name, n]) => [name, n === 60 ? 120 : n]),
  )
  t.same(await counts(rig, 'away'), doubled, 'every rollup has more than the events')

  await back.flush(await back.write('next', 3_000))
  t.same(await counts(rig, 'next'), ONCE, 'what comes next is stored')
  await back.end()
})
