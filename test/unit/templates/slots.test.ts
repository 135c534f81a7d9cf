import t from 'tap'
import {
  findSlots,
  findTail,
  frameOf,
  isPhrase,
  isSentence,
  openContent,
} from '../../../src/templates/slots.js'

const contents = (text: string): string[] =>
  findSlots(text).map(({ from, to }) => text.slice(from, to))

t.test(
  'slots are what stands in quotes, in brackets, behind keys, and the values of JSON',
  async (t) => {
    const slots = (text: string, expected: string[]) => t.same(contents(text), expected, text)
    slots('cannot open "a b" now', ['a b'])
    slots("user 'a' and `b`, it's c", ['a', 'b'])
    slots('state (a b) of f(x) and [c]', ['a b', 'c'])
    slots('done (took: <*>, left: <*>)', [])
    slots('failed. error=a b, c code="d e" last=f', ['a b', 'd e', 'f'])
    slots('x {"k":"a \\"b\\" c","n":5,"o":{"p":true}}', ['a \\"b\\" c', '5', 'true'])
    slots('peers {"urls":["a","b"]}', ['"a","b"'])
    slots('"the message itself" k="a"', ['a'])
    slots('level=info msg="the message itself" k="a"', ['info', 'a'])
    slots('{"c":"net","msg":"the message itself","attr":{"msg":"a b"}}', ['net', 'a b'])
    slots('client "GET /a"', ['/a'])
    slots('client a, request: "GET /a"', ['GET /a'])
    slots('a==b "unclosed (and [open', [])
  },
)

t.test('a frame is the text without the contents', async (t) => {
  const frame = (text: string) => frameOf(text, findSlots(text))
  t.equal(frame('open "a" failed'), frame('open "b c" failed'))
  t.not(frame('open "a" failed'), frame('close "a" failed'))
})

t.test('a tail stands behind a sentence, or a shorter text that tells of an error', async (t) => {
  const tail = (text: string, expected: string | null) => {
    const found = findTail(text, isSentence)
    t.equal(found === null ? null : text.slice(found.from, found.to), expected, text)
  }
  tail('could not open the file: no such file: x', 'no such file: x')
  tail('request failed: timeout', 'timeout')
  tail('sshd: session opened', null)
  tail('the status of the node: ', null)
  tail('could not read "a: b" at all', null)
  tail('could not read it {"k": "a", "l": "b"}', null)
  tail('the request has failed, client: a, server: b', null)
  tail('the handshake has failed (SSL: error) at once', null)
  tail('level=error msg="request failed: timeout" error="a: b"', 'timeout')
  tail('level=error msg="it is done" error="could not do it: a"', null)
  tail('{"level":"error","msg":"request failed: \\"a\\" b","id": 5}', '\\"a\\" b')
})

t.test('an open slot keeps the quotes and brackets that all contents share', async (t) => {
  t.equal(openContent(['a', 'b c']), '<*>')
  t.equal(openContent(['[a]', '[b, c]']), '[<*>]')
  t.equal(openContent(['"a"', '"b","c"']), '"<*>"')
  t.equal(openContent(['[a]', 'b']), '<*>')
  t.equal(openContent(['no room.', 'closed.']), '<*>.')
  t.equal(openContent(['<*>: no room', '<*>: closed']), '<*>: <*>')
})

t.test('hostile texts are read in time', async (t) => {
  for (const part of ['"', '"a"b ', '[1,', '((', '{"k":', 'k=', 'a: ', '["a", ', "'a'", '<*>=']) {
    const text = part.repeat(8192 / part.length)
    t.ok(findSlots(text).length <= 16)
    t.doesNotThrow(() => findTail(text, isPhrase))
  }
})
