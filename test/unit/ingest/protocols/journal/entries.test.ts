import { test } from 'tap'
import { decodeJournalExport } from '../../../../../src/ingest/formats/journal-export.js'
import { JournalEntries } from '../../../../../src/ingest/protocols/journal/entries.js'

const MIB = 1024 * 1024

function sized(name: string, content: Buffer): Buffer {
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(content.length))
  return Buffer.concat([Buffer.from(`${name}\n`), length, content, Buffer.from('\n')])
}

const entry = (...fields: readonly (string | Buffer)[]): Buffer =>
  Buffer.concat([
    ...fields.map((field) => (typeof field === 'string' ? Buffer.from(`${field}\n`) : field)),
    Buffer.from('\n'),
  ])

function messagesOf(bytes: Buffer): readonly unknown[] {
  const found: unknown[] = []
  decodeJournalExport(bytes, { decode: (_, record) => found.push(record['MESSAGE']) })
  return found
}

void test('a stream is split between entries, however it comes', (t) => {
  const entries = [
    entry('__CURSOR=1', 'MESSAGE=one'),
    entry('__CURSOR=2', sized('MESSAGE', Buffer.from('two\n\nlines\n'))),
    entry('__CURSOR=3', sized('EMPTY', Buffer.alloc(0)), 'MESSAGE=three'),
  ]
  const stream = Buffer.concat(entries)
  for (const size of [1, 2, 7, stream.length]) {
    const split = new JournalEntries()
    const parts: Buffer[] = []
    for (let at = 0; at < stream.length; at += size) {
      split.push(stream.subarray(at, at + size))
      if (split.wholeBytes > 0) parts.push(split.take())
    }
    parts.push(split.end())
    t.same(Buffer.concat(parts), stream, `chunks of ${size}: nothing is lost or changed`)
    if (size === 1) t.same(parts.slice(0, -1), entries, 'each part is an entry')
    t.equal(split.heldBytes, 0)
  }
  t.end()
})

void test('memory is bounded, whatever comes', (t) => {
  const split = new JournalEntries()
  const core = sized('COREDUMP', Buffer.alloc(20 * MIB, 'c'))
  const long = `LONG=${'l'.repeat(9 * MIB)}`
  const many = Array.from({ length: 30 }, (_, i) => `FIELD_${i}=${'f'.repeat(MIB)}`)
  const stream = Buffer.concat([
    entry('MESSAGE=first', core, long, ...many),
    entry('MESSAGE=second'),
  ])
  let most = 0
  for (let at = 0; at < stream.length; at += 65_536) {
    split.push(stream.subarray(at, at + 65_536))
    most = Math.max(most, split.heldBytes)
  }
  t.ok(most < 13 * MIB, `${most} bytes are held`)
  t.same(messagesOf(split.end()), ['first', 'second'], 'and both entries are there')
  t.throws(() => new JournalEntries().push(Buffer.alloc(MIB, 'x')), { code: 'bad_request' })
  const endless = new JournalEntries()
  for (let i = 0; i < 200; i++)
    endless.push(Buffer.from(i === 0 ? 'MESSAGE=' : 'x'.repeat(MIB / 4)))
  t.ok(endless.heldBytes < 5 * MIB, 'a line without an end')
  t.end()
})
