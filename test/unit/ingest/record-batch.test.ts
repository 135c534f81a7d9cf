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

void test('bytes that are no batch are read as far as they go', async (t) => {
  const records = (bytes: readonly number[]): number =>
    readBatch(Uint8Array.from(bytes)).each(() => undefined)
  t.equal(records([]), 0)
  t.equal(records([200]), 0)
  t.equal(records([0, 255, 255, 255, 255, 1]), 1)
})
