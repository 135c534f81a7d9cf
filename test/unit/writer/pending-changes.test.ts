import { test } from 'tap'
import { ByteBuffer } from '../../../src/lib/byte-buffer.js'
import { DictColumn, FixedColumn, toNativeBlock } from '../../../src/clickhouse/native-writer.js'
import { NO_AMENDMENT, piecesOf, type NumberedRecord } from '../../../src/writer/batch.js'
import type { SharedChange, SharedCommand } from '../../../src/wal/record.js'
import { PendingChanges } from '../../../src/writer/pending-changes.js'
import { readNative } from '../../support/native.js'

interface Row {
  readonly id: number
  readonly source: string
  readonly receivedMs: number
  readonly isNew?: boolean
}

function record(seq: number, rows: readonly Row[]): NumberedRecord {
  const id = new FixedColumn('id', 'UInt64', 8)
  const isNew = new FixedColumn('is_new', 'UInt8', 1)
  const receivedAt = new FixedColumn('received_at', "DateTime64(3, 'UTC')", 8)
  const source = new DictColumn('source')
  const priority = new FixedColumn('priority', 'Int8', 1)
  for (const row of rows) {
    id.data.u64(row.id)
    isNew.data.u8(row.isNew === false ? 0 : 1)
    receivedAt.data.u64(row.receivedMs)
    source.push(row.source)
    priority.data.u8(3)
  }
  const columns = [id, isNew, receivedAt, source, priority]
  return {
    seq,
    landing: toNativeBlock(columns, rows.length, new ByteBuffer()).bytes,
    landingRows: rows.length,
    dead: null,
    templates: rows.map((row) => ({
      source: row.source,
      id: '1',
      redirectId: '',
      text: '',
      born: 0,
    })),
    registrations: rows.map((row) => ({
      name: row.source,
      type: 'push',
      connector: 'custom',
      applicationId: null,
      keyId: '',
    })),
    command: null,
  }
}

const command = (change: SharedChange, place: Partial<SharedCommand> = {}) =>
  ({ kind: 'shared', id: 'c', change, beforeMs: null, fromSeq: 0, ...place }) as const

/** The rows of a record that are sent: [id, is_new, priority]. */
function sent(pending: PendingChanges, part: NumberedRecord): readonly (readonly unknown[])[] {
  const { leftOut } = pending.stillWanted([part])
  const pieces = pending.revise(piecesOf('landing', [part], { ...NO_AMENDMENT, refused: leftOut }))
  return pieces.flatMap(({ bytes }) => {
    const { rows, columns } = readNative(bytes)
    const of = (name: string, row: number): unknown =>
      columns.find((column) => column.name === name)?.values[row]
    return Array.from({ length: rows }, (_, row) =>
      ['id', 'is_new', 'priority'].map((name) => Number(of(name, row))),
    )
  })
}

const ROWS = [
  { id: 1, source: 'a', receivedMs: 10 },
  { id: 2, source: 'b', receivedMs: 20 },
  { id: 1, source: 'a', receivedMs: 30, isNew: false },
  { id: 1, source: 'a', receivedMs: 40, isNew: false },
]
const DELETED = { kind: 'delete-sources', sources: ['a'] } as const

void test('rows before a deletion are left out, rows after it are sent', async (t) => {
  const pending = new PendingChanges()
  pending.add(5, command(DELETED))
  t.same(sent(pending, record(4, ROWS)), [[2, 1, 3]])
  t.equal(sent(pending, record(6, ROWS)).length, 4)
  const wanted = pending.stillWanted([record(4, ROWS)])
  t.same(
    wanted.templates.map(({ source }) => source),
    ['b'],
  )
  t.same(
    wanted.registrations.map(({ name }) => name),
    ['b'],
  )
  t.same(wanted.again, [])
  pending.drop(4)
  t.equal(sent(pending, record(4, ROWS)).length, 1, 'until all of it is stored')
  pending.drop(5)
  t.equal(sent(pending, record(4, ROWS)).length, 4)
})

void test('a deletion that was missed leaves out only older rows', async (t) => {
  const pending = new PendingChanges()
  pending.add(5, command(DELETED, { beforeMs: 30 }))
  t.same(
    sent(pending, record(4, ROWS)),
    [
      [2, 1, 3],
      [1, 1, 3],
      [1, 0, 3],
    ],
    'the first that is left begins the event',
  )
  const wanted = pending.stillWanted([record(4, ROWS)])
  t.same(wanted.again, ['a'], 'its source is registered again')
  t.same(
    wanted.templates.map(({ source }) => source),
    ['a', 'b', 'a', 'a'],
  )
})

void test('the open batch is unchanged until a change takes effect without this instance', async (t) => {
  const pending = new PendingChanges()
  pending.add(5, command(DELETED, { fromSeq: 3 }))
  t.equal(sent(pending, record(2, ROWS)).length, 4)
  t.equal(pending.covers('c', { from: 1 }), false)
  t.equal(pending.covers('c', { from: 3 }), true)
  t.equal(pending.covers('c', null), true)
  pending.widen('c')
  t.equal(sent(pending, record(2, ROWS)).length, 1)
  t.equal(pending.covers('c', { from: 1 }), true)
})

void test('repeats of a corrected event are recounted, the row that begins it is not', async (t) => {
  const pending = new PendingChanges()
  pending.add(5, command({ kind: 'correct-event', event: 1, priority: 'P1' }))
  t.same(sent(pending, record(4, ROWS)), [
    [1, 1, 3],
    [2, 1, 3],
    [1, 0, 0],
    [1, 0, 0],
  ])
  const correction = { id: 1, tsMs: 0, priority: 'P2', reason: '' } as const
  t.equal(pending.isOvertaken(4, { kind: 'correct-event', correction }), true)
  t.equal(pending.isOvertaken(6, { kind: 'correct-event', correction }), false)
})

void test('`clear-all` leaves out everything', async (t) => {
  const pending = new PendingChanges()
  pending.add(5, command({ kind: 'clear-all' }))
  const part = record(4, ROWS)
  t.same(sent(pending, part), [])
  const { leftOut } = pending.stillWanted([{ ...part, dead: part.landing }])
  t.same(
    leftOut.map(({ table, from, to }) => [table, from, to]),
    [
      ['landing', 0, 4],
      ['dead_letters', 0, 4],
    ],
  )
})
