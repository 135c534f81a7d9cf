import fc from 'fast-check'
import { test } from 'tap'
import { SyslogFraming, takeDatagram } from '../../../../../src/ingest/protocols/syslog/framing.js'
import { recordList } from '../../record-list.js'

const MAX_BYTES = 40

function frames(chunks: readonly string[], maxBytes = MAX_BYTES): readonly string[] {
  const framing = new SyslogFraming(maxBytes)
  const sink = recordList()
  for (const chunk of chunks) framing.push(Buffer.from(chunk), sink)
  framing.end(sink)
  return sink.texts
}

void test('messages are told apart one by one', async (t) => {
  const finds = (stream: string, want: readonly string[], what: string) =>
    t.same(frames([stream]), want, what)
  finds('<1>a\n<2>b\n', ['<1>a', '<2>b'], 'line feeds')
  finds('<1>a\r\n<2>b\r\n', ['<1>a', '<2>b'], 'line feeds of Windows')
  finds('<1>a\0<2>b\0', ['<1>a', '<2>b'], 'NUL, as Python ends them')
  finds('4 <1>a6 <2>b c<3>d\n4 <4>e', ['<1>a', '<2>b c', '<3>d', '<4>e'], 'counts among lines')
  finds('5 <1>a\n4 <2>b\n', ['<1>a', '<2>b'], 'a count that includes the line feed')
  finds('8 <1>a\nb\nc<2>d\n', ['<1>a\nb\nc', '<2>d'], 'a counted message of several lines')
  finds('<1>a', ['<1>a'], 'the end of the stream ends a message')
  finds('\n\0\r\n<1>a\n\n', ['<1>a'], 'empty lines are no messages')
  finds('12 monkeys\n<1>a\n', ['12 monkeys', '<1>a'], 'a number is no count without a priority')
  finds('1234567890 <1>a\n', ['1234567890 <1>a'], 'nor is one of ten digits')
  finds('9 <1>a', ['<1>a'], 'what a broken connection left of a counted message')
})

void test('a line without a priority belongs to the message before it', async (t) => {
  const finds = (stream: string, want: readonly string[], what: string) =>
    t.same(frames([stream]), want, what)
  finds('<1>a\n at b\n\n at c\n<2>d\n', ['<1>a\n at b\n\n at c', '<2>d'], 'a stack trace')
  finds('<1>a\n<html>\n<2>d\n', ['<1>a\n<html>', '<2>d'], 'a tag is no priority')
  finds('<1>a\nb\0c\n', ['<1>a\nb', 'c'], 'but not after a NUL')
  finds('a\nb\n<1>c\n', ['a', 'b', '<1>c'], 'without a message before it, it is one itself')
})

void test('a message is complete when nothing comes for a moment', async (t) => {
  const framing = new SyslogFraming(MAX_BYTES)
  const sink = recordList()
  framing.push(Buffer.from('<1>a\n'), sink)
  t.same(sink.texts, [], 'a line may follow')
  framing.idle(sink)
  t.same(sink.texts, ['<1>a'])
  t.equal(framing.heldBytes, 0)
  framing.push(Buffer.from(' at b\n<2>c'), sink)
  framing.idle(sink)
  t.same(sink.texts, ['<1>a', ' at b'], 'a line that is not ended is not complete')
  t.ok(framing.heldBytes > 0)
  framing.push(Buffer.from('d\n'), sink)
  framing.idle(sink)
  t.same(sink.texts, ['<1>a', ' at b', '<2>cd'])
})

void test('of a message beyond the limit the beginning is kept and the rest skipped', async (t) => {
  const long = 'x'.repeat(60)
  const first = `<1>${'x'.repeat(5)}`
  const cut = (chunks: readonly string[]) => {
    const framing = new SyslogFraming(8)
    const sink = recordList()
    for (const chunk of chunks) framing.push(Buffer.from(chunk), sink)
    framing.end(sink)
    return sink.records
  }
  const want = [
    { text: first, isCut: true },
    { text: '<2>b', isCut: false },
  ]
  t.same(cut([`<1>${long}\n<2>b\n`]), want, 'a line')
  t.same(cut([`<1>${long}`, long, `${long}\n<2>b\n`]), want, 'a line in several chunks')
  t.same(cut([`63 <1>${long}<2>b\n`]), want, 'a counted message')
  t.same(cut([`999999999 <1>${long}`, long]), [want[0]], 'one that never ends')
  t.same(
    cut(['<1>ab\nccccc\n<2>b\n']),
    [
      { text: '<1>ab', isCut: false },
      { text: 'ccccc', isCut: false },
      { text: '<2>b', isCut: false },
    ],
    'lines that would make a message too long are messages',
  )
})

void test('memory is bounded by the limit, whatever comes', async (t) => {
  for (const byte of ['x', '<', '7', '<1>x\n', '999999 <1>']) {
    const framing = new SyslogFraming(10_000)
    const sink = recordList()
    let most = 0
    for (let i = 0; i < 2_000; i++) {
      framing.push(Buffer.from(byte.repeat(100)), sink)
      most = Math.max(most, framing.heldBytes)
    }
    t.ok(most <= 50_000, `${JSON.stringify(byte)}: ${most} bytes`)
  }
})

void test('it does not matter how a stream is cut into chunks', async (t) => {
  const piece = fc.constantFrom(
    '<1>',
    '<23>a',
    '<',
    '>',
    'b c',
    '\n',
    '\n',
    '\0',
    '\r\n',
    '5 <1>ab',
    '12 ',
    '7',
    ' at x',
    '\n\n',
  )
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 30 }),
      fc.array(fc.nat(9), { maxLength: 60 }),
      (pieces, sizes) => {
        const stream = pieces.join('')
        const chunks: string[] = []
        let at = 0
        for (const size of sizes) {
          chunks.push(stream.slice(at, at + size))
          at += size
        }
        chunks.push(stream.slice(at))
        t.same(frames(chunks), frames([stream]), JSON.stringify(chunks))
      },
    ),
    { numRuns: 200 },
  )
})

void test('a datagram is one message', async (t) => {
  const sink = recordList()
  takeDatagram(Buffer.from('<1>a\n<2>b\n\0'), sink)
  takeDatagram(Buffer.from('\0'), sink)
  t.same(sink.texts, ['<1>a\n<2>b'])
})
