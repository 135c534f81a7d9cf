import * as fc from 'fast-check'
import { test } from 'tap'
import { shortestNumber, toStoredTags, wholeTags } from '../../../src/model/stored-tags.js'
import { DELIMITER } from '../../../src/model/stored-message.js'

const stored = (tags: object) => toStoredTags(tags, JSON.stringify(tags))
const listed = (tags: object): readonly string[] => {
  const { names, values } = stored(tags)
  const of = values.split(DELIMITER)
  return names === '' ? [] : names.split(DELIMITER).map((name, i) => `${name}=${of[i] ?? ''}`)
}

void test('stored tags give back their JSON byte for byte', (t) => {
  const name = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.constantFrom('a.b', 'user', '__proto__', '1', DELIMITER, 'x'.repeat(129)),
  )
  const value = fc.oneof(
    fc.jsonValue(),
    fc.string({ unit: 'binary' }),
    fc.constantFrom('5e2', '1.50', '', DELIMITER, 'x'.repeat(2000)),
  )
  fc.assert(
    fc.property(fc.dictionary(name, value, { maxKeys: 6 }), (tags) => {
      const json = JSON.stringify(tags)
      t.equal(wholeTags(stored(tags)), json === '{}' ? '' : json)
    }),
    { seed: 11, numRuns: 2000 },
  )
  t.equal(stored({ a: 1, 'b.c': 'x', d: false }).text, '', 'without a second copy')
  t.end()
})

void test('attributes are the values by their paths', (t) => {
  t.same(listed({ user: { id: 42, 'a.b': 'x' }, ok: true, none: null, empty: {} }), [
    'user.id=42',
    'user.a.b="x"',
    'ok=true',
  ])
  t.same(listed({ list: [1, 'a', [2], { id: 3 }, null] }), [
    'list=1',
    'list="a"',
    'list=2',
    'list.id=3',
  ])
  t.same(listed({ a: '5e2', b: '007', c: '9007199254740993', d: '-0' }), [
    'a="5e2"',
    'a=500',
    'b="007"',
    'c="9007199254740993"',
    'd="-0"',
    'd=0',
  ])
  t.end()
})

void test('what is beyond the bounds is kept as JSON and counted', (t) => {
  const many = Object.fromEntries(Array.from({ length: 258 }, (_, i) => [`k${i}`, i]))
  t.equal(listed(many).length, 256)
  t.equal(stored(many).leftOut, 2)
  t.equal(stored(many).text, JSON.stringify(many))
  for (const [tags, leftOut] of [
    [{ ['k'.repeat(128)]: 1 }, 0],
    [{ ['k'.repeat(129)]: 1 }, 1],
    [{ ['k'.repeat(64)]: { ['l'.repeat(64)]: 1, ['l'.repeat(63)]: 1 } }, 1],
    [{ k: 'x'.repeat(1022) }, 0],
    [{ k: 'x'.repeat(1023) }, 1],
    [{ k: 'é'.repeat(511) }, 0],
    [{ k: 'é'.repeat(512) }, 1],
    [{ [`a${DELIMITER}b`]: 1, '': 2 }, 2],
    [{ k: null, l: [], m: {} }, 0],
  ] as const)
    t.equal(stored(tags).leftOut, leftOut, JSON.stringify(tags).slice(0, 40))
  t.end()
})

void test('only exact numbers have a shortest form', (t) => {
  for (const [text, form] of [
    ['5', '5'],
    ['5.0', '5'],
    ['-1.50e1', '-15'],
    ['0.0000001', '1e-7'],
    ['9007199254740991', '9007199254740991'],
    ['9007199254740992', null],
    ['1e400', null],
    ['007', null],
    ['+5', null],
    ['', null],
    ['10.0.0.9', null],
  ] as const)
    t.equal(shortestNumber(text), form, text)
  t.end()
})
