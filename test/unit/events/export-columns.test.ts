import t from 'tap'
import { LIST_FIELD_NAMES } from '../../../src/api/schemas/event.js'
import { EVENT_FIELDS, toExportLines } from '../../../src/events/export-columns.js'

t.test('an export has the fields of the list, in the same order', async (t) => {
  t.same([...EVENT_FIELDS], LIST_FIELD_NAMES)
})

t.test('only fields that need them make ClickHouse read the repeats', async (t) => {
  t.equal(toExportLines('ndjson', null, []).needsRepeats, true)
  t.equal(toExportLines('txt', null, []).needsRepeats, false)
  t.equal(toExportLines('csv', ['id', 'last_seen'], []).needsRepeats, true)
  t.equal(toExportLines('csv', ['id', 'user.id'], []).needsRepeats, false)
})

t.test('CSV begins with the names, which are no formulas either', async (t) => {
  const headOf = (names: readonly string[]): string => toExportLines('csv', names, []).head
  t.equal(headOf(['id', 'user.id']), 'id,user.id\r\n')
  t.equal(headOf(['=1+1', 'a,b', 'a"b']), `"'=1+1","a,b","a""b"\r\n`)
  t.equal(toExportLines('ndjson', null, []).head, '')
  t.equal(toExportLines('txt', null, []).head, '')
})
