import t from 'tap'

import {
  clauseLine,
  clauses,
  joined,
  only,
  stateOf,
  without,
} from '../../../src/ui/lib/query-edit.js'

t.test('a press on a value asks for it only, and once more for any', async (t) => {
  const steps = (line: string, ...pressed: readonly (readonly [string, string])[]) =>
    pressed.reduce((now, [name, value]) => only(now, name, value), line)
  t.equal(steps('', ['source', 'shop']), 'source:shop')
  t.equal(steps('timeout', ['source', 'shop']), 'timeout source:shop')
  t.equal(steps('timeout', ['source', 'shop'], ['source', 'shop']), 'timeout')
  t.equal(steps('', ['source', 'a'], ['source', 'b']), 'source:b', 'another value takes its place')
  t.equal(steps('source:a,b x', ['source', 'b']), 'x source:b')
  t.equal(steps('-source:a', ['source', 'a']), 'source:a', 'the opposite goes')
  t.equal(steps('', ['severity', 'ERROR']), 'severity:error')
  t.equal(steps('severity:error', ['severity', 'ERROR']), '')
  t.equal(steps('a OR b', ['host', 'h']), '(a OR b) host:h')
  t.equal(steps('', ['host', 'two words, "quoted"']), String.raw`host:"two words, \"quoted\""`)
  t.equal(steps('', ['host', '']), '-has:host', 'an empty value is none')
  t.equal(steps('', ['http.status', '500']), 'http.status:500')
  t.equal(steps('', ['tag.host', 'x']), 'tag.host:x')
})

t.test('a value is left out, and once more not', async (t) => {
  t.equal(without('x', 'source', 'shop'), 'x -source:shop')
  t.equal(without('x -source:shop', 'source', 'shop'), 'x')
  t.equal(without('source:shop', 'source', 'shop'), '-source:shop')
  t.equal(without('-source:a', 'source', 'b'), '-source:a -source:b', 'several can be left out')
  t.equal(without('', 'host', ''), 'has:host')
})

t.test('a faulty line is appended to, so that nothing typed is lost', async (t) => {
  t.equal(only('severity:nonsense', 'source', 'shop'), 'severity:nonsense source:shop')
  t.equal(clauses('('), null)
})

t.test('a line says whether a value is asked for or left out', async (t) => {
  const line = 'source:shop -host:web-1 user.id:42'
  t.equal(stateOf(line, 'source', 'shop'), 'only')
  t.equal(stateOf(line, 'host', 'web-1'), 'not')
  t.equal(stateOf(line, 'user.id', '42'), 'only')
  t.equal(stateOf(line, 'host', 'web-2'), 'any')
  t.equal(stateOf('(', 'host', 'web-2'), 'any')
})

t.test('clauses come apart and together', async (t) => {
  const line = 'severity>=warning (a OR b) -host:x "a b"'
  const parts = clauses(line) ?? []
  t.same(parts, ['severity>=warning', 'a OR b', '-host:x', '"a b"'])
  t.equal(joined(parts), line)
  t.equal(joined(parts.slice(1)), '(a OR b) -host:x "a b"')
  t.equal(clauseLine('source', 'a b'), 'source:"a b"')
})
