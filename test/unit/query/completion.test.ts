import * as fc from 'fast-check'
import t from 'tap'
import { BUILTIN_FIELDS } from '../../../src/query/ast.js'
import { completeQuery } from '../../../src/query/completion.js'

/** @param marked a line with `|` where the cursor is */
function complete(marked: string) {
  const position = marked.indexOf('|')
  const line = marked.replace('|', '')
  const { position: from, length, expected, field, names } = completeQuery(line, position)
  return [line.slice(from, from + length), expected.join(' '), field?.name ?? null, names]
}

t.test('what can be typed at a position', async (t) => {
  t.same(complete('|'), ['', 'clause', null, BUILTIN_FIELDS])
  t.same(complete('a |'), ['', 'clause operator', null, BUILTIN_FIELDS])
  t.same(complete('(a) |'), ['', 'clause operator', null, BUILTIN_FIELDS])
  t.same(complete('a OR |'), ['', 'clause', null, BUILTIN_FIELDS])
  t.same(complete('(|'), ['', 'clause', null, BUILTIN_FIELDS])
  t.same(complete('-|'), ['-', 'clause', null, []], 'a lone dash is a word so far')
  t.same(complete('-se|'), ['se', 'clause', null, ['severity']])
  t.same(complete('so|'), ['so', 'clause', null, ['source']])
  t.same(complete('s|ev b'), ['sev', 'clause', null, ['severity', 'source', 'span']])
  t.same(complete('sou|rce:x'), ['source', 'clause', null, ['source']])
  t.same(complete('O|'), ['O', 'clause', null, []])
  t.same(complete('a OR|'), ['OR', 'clause', null, []])
  t.same(complete('severity:|'), [
    '',
    'value',
    'severity',
    ['debug', 'info', 'warning', 'error', 'critical'],
  ])
  t.same(complete('severity>=w|arn b'), ['warn', 'value', 'severity', ['warning']])
  t.same(complete('priority:P1,|'), ['', 'value', 'priority', ['P1', 'P2', 'P3', 'P4']])
  t.same(complete('a,|'), [',', '', null, []])
  t.same(complete('user.id:"a b|'), ['"a b', 'value', 'user.id', []])
  t.same(complete('has:us|'), ['us', 'value', 'has', []])
  t.same(complete('has:|')[3], BUILTIN_FIELDS)
  t.same(complete('"a b|'), ['"a b', '', null, []])
  t.same(complete('"a |b"'), ['"a b"', '', null, []])
  t.same(complete('"a b"|'), ['', 'clause operator', null, BUILTIN_FIELDS])
  t.same(complete('host: |'), ['', 'clause', null, BUILTIN_FIELDS])
})

t.test('a position of any line has an answer', async () => {
  const line = fc.string({
    unit: fc.constantFrom(...Array.from('ah:, "/-()>*'), 'OR'),
    maxLength: 12,
  })
  fc.assert(
    fc.property(line, fc.nat(14), (text, position) => {
      const found = completeQuery(text, Math.min(position, text.length))
      return found.position >= 0 && found.position + found.length <= text.length
    }),
    { numRuns: 3000 },
  )
})
