import { array, assert, integer, property } from 'fast-check'
import { test } from 'tap'
import { cursorKey } from '../../../src/records/cursor.js'
import { pageNewestFirst, pageOldestFirst } from '../../../src/records/page.js'

const key = cursorKey('a secret of more than thirty-two characters')
const toRecord = (createdAtMs: number, i: number) => ({ id: `id-${i}`, createdAtMs })
const filters = { list: 'things' }

void test('pages walk over all records once, oldest first, also when some share their timestamp', async () => {
  const timestamps = array(integer({ min: 0, max: 5 }), { maxLength: 40 })
  assert(
    property(timestamps, integer({ min: 1, max: 7 }), (times, limit) => {
      const records = times.map(toRecord)
      const request = { limit, filters, cursorKey: key }
      const seen: { id: string; createdAtMs: number }[] = []
      let cursor: string | undefined
      for (;;) {
        const page = pageOldestFirst(records, { ...request, cursor })
        seen.push(...page.items)
        if (page.has_more !== (page.next_cursor !== null)) return false
        if (page.next_cursor === null) break
        if (page.items.length !== limit) return false
        cursor = page.next_cursor
      }
      const inOrder = seen.every((record, i) => {
        const before = seen[i - 1]?.createdAtMs ?? record.createdAtMs
        return before <= record.createdAtMs
      })
      return inOrder && seen.length === times.length && new Set(seen).size === times.length
    }),
  )
})

void test('pages walk newest first too', (t) => {
  const records = [5, 9, 7, 7].map(toRecord)
  const request = { limit: 3, filters, cursorKey: key }
  const first = pageNewestFirst(records, { ...request, cursor: undefined })
  t.strictSame(
    first.items.map(({ id }) => id),
    ['id-1', 'id-3', 'id-2'],
  )
  const rest = pageNewestFirst(records, { ...request, cursor: first.next_cursor ?? '' })
  t.strictSame(rest.items, [toRecord(5, 0)])
  t.end()
})

void test('a page goes on where the last one ended although its record is gone', async (t) => {
  const records = [1, 2, 3, 4].map(toRecord)
  const request = { limit: 2, filters, cursorKey: key }
  const first = pageOldestFirst(records, { ...request, cursor: undefined })
  const rest = pageOldestFirst([...records.slice(2), toRecord(0, 9)], {
    ...request,
    cursor: first.next_cursor ?? '',
  })
  t.strictSame(rest.items, records.slice(2))
  t.equal(rest.has_more, false)
})

void test('a cursor of another list is refused', async (t) => {
  const records = [1, 2, 3].map(toRecord)
  const request = { limit: 2, filters, cursorKey: key }
  const { next_cursor } = pageOldestFirst(records, { ...request, cursor: undefined })
  const other = { ...request, filters: { list: 'others' }, cursor: next_cursor ?? '' }
  t.throws(() => pageOldestFirst(records, other), { code: 'invalid_cursor' })
})
