import fc from 'fast-check'
import { test } from 'tap'
import { readBatch, RecordBatch } from '../../../src/ingest/record-batch.js'

void test('a batch gives back the records of a sender', async (t) => {
  const batch = new RecordBatch('10.0.0.7')
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.uint8Array({ maxLength: 3000 }), fc.boolean())), (records) => {
      for (const [bytes, isCut] of records) {
        const padded = Buffer.concat([Buffer.from('ab'), bytes, Buffer.from('c')])
        batch.record(padded, 2, padded.length - 1, isCut)
      }
      t.equal(batch.records, records.length)
      const body = batch.take()
      if (records.length === 0) return t.equal(body.length, 0)
      const read = readBatch(body)
      const got: [Uint8Array, boolean][] = []
      const lines: number[] = []
      const count = read.each((record, isCut, line) => {
        got.push([Uint8Array.from(record), isCut])
        lines.push(line)
      })
      t.equal(read.sender, '10.0.0.7')
      t.equal(count, records.length)
      t.same(got, records)
      t.same(
        lines,
        records.map((_, i) => i + 1),
      )
      return t.equal(batch.size, 0, 'and begins the next one')
    }),
    { numRuns: 50 },
  )
})

void test('records of one chunk are copied together, and may change afterwards', async (t) => {
  const batch = new RecordBatch('')
  const chunk = Buffer.from(`one\ntwo\n${' '.repeat(100)}three`)
  batch.record(chunk, 0, 3, false)
  batch.record(chunk, 4, 7, true)
  batch.record(chunk, 108, 113, false)
  batch.record(chunk, 0, 1, false)
  batch.settle()
  chunk.fill(0xff)
  const body = batch.take()
  const got: string[] = []
  readBatch(body).each((bytes, isCut) => got.push(`${bytes.toString()}${isCut ? '…' : ''}`))
  t.same(got, ['one', 'two…', 'three', 'o'])
  t.equal(body.length, 1 + 'one\ntwothreeo'.length + 4 * 8 + 4)
})

void test('bytes that are no batch have records within them, or none', async (t) => {
  const records = (bytes: readonly number[]): number[] => {
    const lengths: number[] = []
    readBatch(Uint8Array.from(bytes)).each(({ length }) => lengths.push(length))
    return lengths
  }
  t.same(records([]), [])
  t.same(records([200]), [])
  t.same(records([0, 255, 255, 255, 255, 1]), [])
  const extent = [1, 0, 0, 0, 255, 255, 255, 127]
  t.same(records([0, 7, 7, ...extent, 1, 0, 0, 0]), [2])
  t.same(records([0, 7, 7, ...extent, 9, 0, 0, 0]), [2], 'with more than there are')
})
