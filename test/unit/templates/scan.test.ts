import * as fc from 'fast-check'
import t from 'tap'
import { hashText } from '../../../src/lib/hash.js'
import { MessageBytes, scanTokens, tokenArray } from '../../../src/templates/scan.js'
import * as layout from '../../../src/wasm/layout.js'

const encoder = new TextEncoder()
const messages = new MessageBytes()

function signatureOf(message: string, source = 'app'): string {
  const seed = new Int32Array(2)
  const out = new Int32Array(2)
  hashText(source, seed)
  const bytes = encoder.encode(message)
  messages.load(bytes)
  messages.signature(0, bytes.length, seed[0] ?? 0, seed[1] ?? 0, out)
  return `${out[0]}/${out[1]}`
}

t.test('messages that differ in values only have one signature', async (t) => {
  const same = (a: string, b: string) => t.equal(signatureOf(a), signatureOf(b), `${a} = ${b}`)
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

t.test('words, punctuation and sources distinguish signatures', async (t) => {
  const differ = (a: string, b: string) => t.not(signatureOf(a), signatureOf(b), `${a} ≠ ${b}`)
  differ('user logged in', 'user logged out')
  differ('state: ok', 'state; ok')
  differ('a b', 'ab')
  differ('a:b', 'a: b')
  differ('count 5', 'count five')
  differ('ssh1', 'ssh2')
  differ('Accepted', 'AccepteD')
  differ('replicap', 'replica0')
  differ('ContainerStarted', 'ContainerStartee')
  differ('java.net.SocketException', 'java.net.SocketExceptioo')
  differ(`j${'h'.repeat(40)}`, `i${'h'.repeat(41)}`)
  differ('CrashLoopBackOfé: 2', 'CrashLöpBackOff: 2')
  differ('a-b日1', 'c-b日1')
  differ('', 'x')
  t.not(signatureOf('user logged in', 'a'), signatureOf('user logged in', 'b'), 'sources')
})

const tokens = tokenArray()

function tokensOf(message: string): [number, number, number][] {
  const count = scanTokens(encoder.encode(message), tokens)
  return Array.from({ length: count }, (_, i) => {
    const [kind = 0, from = 0, to = 0] = tokens.subarray(i * layout.TOKEN_INTS)
    return [kind, from, to]
  })
}

/** Returns the message with its values masked. */
function masked(message: string): string {
  const bytes = Buffer.from(message)
  let text = ''
  let at = 0
  for (const [kind, from, to] of tokensOf(message)) {
    const isValue = kind >= layout.TOKEN_VALUE
    text +=
      bytes.toString('latin1', at, from) + (isValue ? '\0' : bytes.toString('latin1', from, to))
    at = to
  }
  return (text + bytes.toString('latin1', at)).trimEnd().replaceAll(/ +/g, ' ')
}

t.test('messages with one signature differ in values only', async (t) => {
  const piece = fc.oneof(
    fc.constantFrom(...' : . - / = , ( ) [ ] " @ # \\ < > ; <*> :: //'.split(' '), ' ', '  '),
    fc.constantFrom(
      ...'from connection Accepted ContainerStarted java.io.IOException com'.split(' '),
    ),
    fc.constantFrom(
      ...'7 1234 10.0.0.1:80 9:28:19 2025-11-12 0a1b2c3d deadbeefcafe /var/log/x blk_-12'.split(
        ' ',
      ),
    ),
    fc.constantFrom(...'é 日本 日1 x1 a12 ::1 -5 http://a.b/c?d a@b.c node-7'.split(' ')),
    fc.stringMatching(/^[a-zA-Z0-9]{1,40}$/),
    fc.stringMatching(/^[0-9.:]{1,40}$/),
  )
  const pieces = fc.array(piece, { minLength: 1, maxLength: 14 })
  let equal = 0
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(pieces, piece, fc.nat(), (all, other, at) => {
        const [a, b] = [all.join(''), all.with(at % all.length, other).join('')]
        if (signatureOf(a) !== signatureOf(b)) return true
        equal++
        return masked(a) === masked(b)
      }),
      { numRuns: 3000 },
    ),
  )
  t.ok(equal > 50, `${equal} pairs with one signature`)
})

t.test('words and numbers of any length are single tokens', async (t) => {
  const number = fc.array(fc.stringMatching(/^[0-9]{1,20}$/), { minLength: 1, maxLength: 6 })
  const word = fc.stringMatching(/^[g-z_~éß日]{1,90}$/)
  const before = fc.constantFrom('', ' ', '(', '"', 'word ')
  const behind = fc.constantFrom('', ' ', ') ', ', 1', '"x', '; 日')
  const isRead = (at: string, text: string, rest: string, kinds: readonly number[]): boolean => {
    const from = Buffer.byteLength(at)
    const token = tokensOf(at + text + rest).find(([, begin]) => begin === from)
    return (
      token !== undefined && kinds.includes(token[0]) && token[2] === from + Buffer.byteLength(text)
    )
  }
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(before, number, fc.constantFrom('.', ':'), behind, (at, parts, point, rest) =>
        isRead(at, parts.join(point), rest, [layout.TOKEN_VALUE, layout.TOKEN_TIME]),
      ),
    ),
  )
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(before, word, behind, (at, text, rest) => {
        const isLong = Buffer.byteLength(text) > 96
        return isRead(at, text, rest, [isLong ? layout.TOKEN_VALUE : layout.TOKEN_WORD])
      }),
    ),
  )
})

t.test("a signature does not depend on the message's offset in a buffer", async (t) => {
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
          // The byte before a message is never part of a word, because a message begins at a boundary.
          messages.load(m)
          messages.signature(0, m.length, 1, 2, alone)
          messages.load(all)
          messages.signature(a.length, a.length + m.length, 1, 2, within)
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
        messages.signature(0, bytes.length, 0, 0, out)
        return out[0] !== 0
      }),
    ),
  )
})

t.test('the signature of a message of 1 MB depends on its first 8 KiB only', async (t) => {
  const head = 'word '.repeat(100)
  t.equal(signatureOf(head + 'x '.repeat(500_000)), signatureOf(head + 'x '.repeat(400_000)))
})
