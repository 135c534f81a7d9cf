import * as fc from 'fast-check'
import t from 'tap'
import { MessageBytes, sourceSeed } from '../../../src/mining/scan.js'

const encoder = new TextEncoder()
const messages = new MessageBytes()

function shape(message: string, source = 'app'): string {
  const seed = new Int32Array(2)
  const out = new Int32Array(2)
  sourceSeed(source, seed)
  const bytes = encoder.encode(message)
  messages.load(bytes)
  messages.shape(0, bytes.length, seed[0] ?? 0, seed[1] ?? 0, out)
  return `${out[0]}/${out[1]}`
}

t.test('values of one kind give one shape', async (t) => {
  const same = (a: string, b: string) => t.equal(shape(a), shape(b), `${a} = ${b}`)
  same('took 5 ms', 'took 1234 ms')
  same('from 10.0.0.1:80', 'from 192.168.17.254:65535')
  same('block blk_123456 done', 'block blk_-987654321 done')
  same('at 0x1f3a', 'at 0xffffffff')
  same('open /var/log/syslog', 'open /etc/passwd')
  same('get https://a.example/x?q=1', 'get http://b.example/y')
  same('id 550e8400-e29b-41d4-a716-446655440000', 'id 00000000-0000-4000-8000-00000000abcd')
  same('mac 00:11:43:e3:ba:c3', 'mac ff:ff:ff:ff:ff:ff')
  same('host www.example.com up', 'host mail.example.org up')
  same('at 12:00:01', 'at 23:59:59.123')
})

t.test('words, punctuation and sources tell shapes apart', async (t) => {
  const differ = (a: string, b: string) => t.not(shape(a), shape(b), `${a} ≠ ${b}`)
  differ('user logged in', 'user logged out')
  differ('state: ok', 'state; ok')
  differ('a b', 'ab')
  differ('a:b', 'a: b')
  differ('count 5', 'count five')
  differ('ssh1', 'ssh2')
  differ('', 'x')
  t.not(shape('user logged in', 'a'), shape('user logged in', 'b'), 'sources')
})

t.test('a shape is the same wherever the message stands in a buffer', async (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary' }),
        fc.string(),
        fc.string(),
        (message, before, after) => {
          const [a, m, z] = [before, message, after].map((text) => encoder.encode(text))
          if (a === undefined || m === undefined || z === undefined) return false
          const all = Uint8Array.from([...a, ...m, ...z])
          const alone = new Int32Array(2)
          const within = new Int32Array(2)
          // the byte before a message may not be a word's: a record begins at a boundary
          messages.load(m)
          messages.shape(0, m.length, 1, 2, alone)
          messages.load(all)
          messages.shape(a.length, a.length + m.length, 1, 2, within)
          return alone[0] === within[0] && alone[1] === within[1]
        },
      ),
    ),
  )
})

t.test('any bytes can be scanned, and the first hash is never 0', async (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        const out = new Int32Array(2)
        messages.load(bytes)
        messages.shape(0, bytes.length, 0, 0, out)
        return out[0] !== 0
      }),
    ),
  )
})

t.test('a message of 1 MB is told by its first 8 KiB', async (t) => {
  const head = 'word '.repeat(100)
  t.equal(shape(head + 'x '.repeat(500_000)), shape(head + 'x '.repeat(400_000)))
})
