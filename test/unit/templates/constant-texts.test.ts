import { test } from 'tap'
import { ConstantTexts } from '../../../src/templates/constant-texts.js'

void test('every thread reads the newest constant text of each template, until the memory is full', (t) => {
  const table = ConstantTexts.create(64)
  const reader = new ConstantTexts(table.buffer)
  const read = (no: number): string => Buffer.from(reader.get(no)).toString()
  t.equal(read(1), '')
  table.put(1, 'disk \u0001 is full')
  table.put(2, 'größer')
  t.equal(read(1), 'disk \u0001 is full')
  t.equal(read(2), 'größer')
  const old = reader.get(1)
  table.put(1, '\u0001 is full')
  t.equal(read(1), '\u0001 is full')
  t.equal(
    Buffer.from(old).toString(),
    'disk \u0001 is full',
    'a text that was read does not change',
  )
  for (let i = 0; i < 100; i++) table.put(2, 'größer')
  table.put(3, 'x'.repeat(80))
  t.equal(read(3), '', 'the memory is full')
  table.put(3, 'y')
  t.equal(read(3), 'y')
  table.put(1, '')
  t.equal(read(1), '', 'an empty text replaces it')
  for (const no of [0, -1, 1 << 20]) {
    table.put(no, 'z')
    t.equal(read(no), '', `number ${no}`)
  }
  t.end()
})

void test('after a clear no reader finds an old text', (t) => {
  const table = ConstantTexts.create(64)
  const reader = new ConstantTexts(table.buffer)
  const read = (no: number): string => Buffer.from(reader.get(no)).toString()
  table.put(1, 'a long text')
  table.put(2, 'another')
  t.equal(read(1), 'a long text')
  table.clear()
  t.equal(read(1), '')
  table.put(1, 'short')
  t.equal(read(1), 'short', 'at the same place, with another length')
  t.equal(read(2), '')
  for (let i = 0; i < 20; i++) {
    table.put(2, 'x'.repeat(30))
    t.equal(read(2).length, 30, 'the room is free again')
    table.clear()
  }
  t.end()
})
