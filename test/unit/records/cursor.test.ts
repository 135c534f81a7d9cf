import { assert, jsonValue, property, string } from 'fast-check'
import { test } from 'tap'
import { cursorKey, decodeCursor, encodeCursor } from '../../../src/records/cursor.js'

const key = cursorKey('a secret of more than thirty-two characters')
const filters = { list: 'events', severity: ['ERROR'], search: undefined, start_time: '2024-01-01' }
const isAnything = (value: unknown): value is unknown => value !== undefined
const invalid = { code: 'invalid_cursor', status: 422 }

void test('a position comes back as it was', async (t) => {
  assert(
    property(jsonValue(), (position) => {
      const want = JSON.parse(JSON.stringify(position))
      const text = encodeCursor(key, filters, position)
      t.match(text, /^[\w-]+$/)
      t.strictSame(decodeCursor(key, filters, text, isAnything), want)
    }),
    { numRuns: 50 },
  )
})

void test('the order of filters and absent ones do not matter', async (t) => {
  const text = encodeCursor(key, filters, [1])
  const same = { start_time: '2024-01-01', severity: ['ERROR'], list: 'events' }
  t.strictSame(decodeCursor(key, same, text, isAnything), [1])
})

void test('another list, other filters, another key are refused', async (t) => {
  const text = encodeCursor(key, filters, [1])
  for (const other of [
    { ...filters, list: 'alerts' },
    { ...filters, severity: ['ERROR', 'CRITICAL'] },
    { ...filters, severity: 'ERROR' },
    { ...filters, search: '' },
    { list: 'events' },
  ])
    t.throws(() => decodeCursor(key, other, text, isAnything), invalid)
  const otherKey = cursorKey('another secret of more than 32 characters')
  t.throws(() => decodeCursor(otherKey, filters, text, isAnything), invalid)
})

void test('any changed character, and any other text, is refused', async (t) => {
  const text = encodeCursor(key, filters, [1_700_000_000_000, 42])
  for (let i = 0; i < text.length; i++) {
    const other = `${text.slice(0, i)}${text[i] === 'A' ? 'B' : 'A'}${text.slice(i + 1)}`
    t.throws(() => decodeCursor(key, filters, other, isAnything), invalid)
  }
  for (const other of [`${text}=`, `${text} `, ` ${text}`, text.slice(1), text.slice(0, -1), ''])
    t.throws(() => decodeCursor(key, filters, other, isAnything), invalid)
  assert(
    property(string({ maxLength: 3_000 }), (other) => {
      t.throws(() => decodeCursor(key, filters, other, isAnything), invalid)
    }),
    { numRuns: 50 },
  )
})

void test('a position of another shape is refused', async (t) => {
  const isNumber = (value: unknown): value is number => typeof value === 'number'
  t.equal(decodeCursor(key, filters, encodeCursor(key, filters, 7), isNumber), 7)
  t.throws(() => decodeCursor(key, filters, encodeCursor(key, filters, '7'), isNumber), invalid)
})
