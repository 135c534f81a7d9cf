import { array, assert, asyncProperty, boolean, constantFrom, integer, record } from 'fast-check'
import { test } from 'tap'
import { cursorKey } from '../../../src/records/cursor.js'
import { NewestFirst } from '../../../src/records/newest-first.js'
import { memoryRecords } from '../../support/records.js'

interface Thing {
  readonly id: string
  readonly seq: number
  readonly even: boolean
}

const key = cursorKey('a secret of more than thirty-two characters')
const query = (limit: number, cursor?: string) => ({
  limit,
  cursor,
  filters: { list: 'things' },
  cursorKey: key,
})
const make = (seq: number, id = `id-${seq}`): Thing => ({ id, seq, even: seq % 2 === 0 })

function walk(index: NewestFirst<Thing>, limit: number, matches: (thing: Thing) => boolean) {
  const seen: Thing[] = []
  let cursor: string | undefined
  for (;;) {
    const page = index.page(query(limit, cursor), matches)
    seen.push(...page.items)
    if ((page.next_cursor === null) === page.has_more) throw new Error('has_more and cursor differ')
    if (page.next_cursor === null) return seen
    if (page.items.length !== limit) throw new Error('a short page in the middle')
    cursor = page.next_cursor
  }
}

void test('pages agree with a sorted copy after any changes', async () => {
  const step = record({
    kind: constantFrom('put', 'change', 'remove', 'clear'),
    seq: integer({ min: 1, max: 30 }),
    twin: boolean(),
  })
  await assert(
    asyncProperty(
      array(step, { maxLength: 60 }),
      integer({ min: 1, max: 7 }),
      boolean(),
      async (steps, limit, evenOnly) => {
        const records = memoryRecords<Thing>([['id-5', make(5)]])
        const index = new NewestFirst(records)
        for (const { kind, seq, twin } of steps) {
          const id = twin ? `twin-${seq}` : `id-${seq}`
          if (kind === 'put') await records.update(id, () => make(seq, id))
          if (kind === 'change')
            await records.update(id, (thing) => thing && { ...thing, even: true })
          if (kind === 'remove') await records.remove(id)
          if (kind === 'clear' && twin && seq === 1) await records.clear()
        }
        const matches = (thing: Thing): boolean => !evenOnly || thing.even
        const want = records
          .list()
          .filter(matches)
          .toSorted((a, b) => b.seq - a.seq || (a.id < b.id ? 1 : -1))
        return JSON.stringify(walk(index, limit, matches)) === JSON.stringify(want)
      },
    ),
  )
})

void test('a walk shows what lasts once, whatever comes and goes meanwhile', async (t) => {
  const records = memoryRecords<Thing>()
  const index = new NewestFirst(records)
  for (let seq = 1; seq <= 5_000; seq++) await records.update(`id-${seq}`, () => make(seq))
  const first = index.page(query(200), () => true)
  for (let seq = 1; seq <= 5_000; seq += 2) await records.remove(`id-${seq}`)
  await records.update('id-9999', () => make(9_999))
  const seen = new Set(first.items.map(({ id }) => id))
  let cursor = first.next_cursor
  while (cursor !== null) {
    const page = index.page(query(200, cursor), () => true)
    for (const { id } of page.items) {
      t.notOk(seen.has(id) || id === 'id-9999', id)
      seen.add(id)
    }
    cursor = page.next_cursor
  }
  for (let seq = 2; seq <= 5_000; seq += 2)
    if (!seen.has(`id-${seq}`)) t.fail(`id-${seq} is missing`)
})

void test('numbers grow within a millisecond, over a clock set back, and over what was loaded', async (t) => {
  const index = new NewestFirst(memoryRecords<Thing>([['id-9', make(9_000_000)]]))
  t.equal(index.nextSeq(8_000), 9_000_001)
  t.equal(index.nextSeq(10_000), 10_000_000)
  t.equal(index.nextSeq(10_000), 10_000_001)
  t.equal(index.nextSeq(9_000, 20_000_000), 20_000_001)
})

void test('a cursor of another list or key is refused', async (t) => {
  const index = new NewestFirst(memoryRecords<Thing>([1, 2].map((seq) => [`id-${seq}`, make(seq)])))
  const { next_cursor: cursor } = index.page(query(1), () => true)
  const other = { ...query(1, cursor ?? ''), filters: { list: 'others' } }
  t.throws(() => index.page(other, () => true), { code: 'invalid_cursor' })
  t.throws(() => index.page(query(1, 'bm9uc2Vuc2U'), () => true), { code: 'invalid_cursor' })
})
