import {
  array,
  assert,
  constantFrom,
  oneof,
  property,
  string,
  stringMatching,
  tuple,
} from 'fast-check'
import { test } from 'tap'
import { DELIMITER, toConstantText, wholeMessage } from '../../../src/model/stored-message.js'
import { BlockEncoder } from '../../../src/ingest/block-encoder.js'
import { readNative } from '../../support/native.js'

const VALUE = '<*>'
const wordsOf = (text: string): string[] => text.match(/[A-Za-z0-9\u0080-\u{10ffff}]+/gu) ?? []

let constantText = ''
const block = new BlockEncoder(
  {
    templateNo: () => 5000,
    templateGeneration: () => 0,
    constantText: (no) => Buffer.from(no === 5000 ? constantText : 'another'),
  },
  { seed: [1, 2, 3, 4], ignoredTags: [], isDeduplicated: true },
)
const NOW = 1_800_000_000_000
const CONTEXT = {
  nowMs: NOW,
  environment: 'e',
  defaultSource: 's',
  maxMessageBytes: 65_536,
  isUtf8: true,
  isUtc: true,
}

/** Splits messages like a worker, all by one constant text. */
function splitAll(
  text: string,
  messages: readonly string[],
): [constantText: string, message: string][] {
  if (messages.length === 0) return []
  constantText = text
  const lines = messages.map(
    (message, i) =>
      `${JSON.stringify({ timestamp: NOW - i, source: 's', severity: 'INFO', message })}\n`,
  )
  block.begin(NOW, 'v1')
  block.beginBody(Buffer.from(lines.join('')), CONTEXT, () => 'store')
  const { accepted } = block.readLines(0, messages.length)
  if (accepted !== messages.length) throw new Error(`${accepted} of ${messages.length} lines read`)
  const { columns } = readNative(block.finish()?.bytes ?? new Uint8Array(0))
  const textsOf = (name: string): string[] =>
    columns.find((column) => column.name === name)?.values.map(String) ?? []
  const kept = textsOf('variables')
  return textsOf('constant_text').map((one, i) => [one, kept[i] ?? ''])
}

const literal = oneof(
  constantFrom(' ', ': ', ' from ', 'user=', ' (', ') ', '', 'ü ', ' - ', '", "', ' port '),
  stringMatching(/^[a-c :=,.-]{0,40}$/),
)
const value = oneof(
  constantFrom(DELIMITER, '', '17', '10.0.0.1', 'bob', 'Grüße', 'a b c', ' from ', 'x'.repeat(99)),
  string({ unit: 'grapheme', maxLength: 20 }),
)

void test('a message is its constant text and its values, and no word crosses from one to the other', (t) => {
  const seen = { split: 0, whole: 0 }
  const parts = tuple(
    array(literal, { minLength: 1, maxLength: 6 }),
    array(value, { minLength: 24 }),
  )
  assert(
    property(parts, ([literals, values]) => {
      const wantedSkeleton = toConstantText(literals)
      const messages = [0, 1, 2, 3].map(
        (row) =>
          literals[0] +
          literals
            .slice(1)
            .map((text, i) => (values[row * 6 + i] ?? '') + text)
            .join(''),
      )
      const wanted = messages.filter((message) => message !== '')
      return splitAll(wantedSkeleton, wanted).every(([found, kept], i) => {
        const message = wanted[i] ?? ''
        if (found === '') seen.whole++
        else seen.split++
        // A message made of a template's text is of the template, unless it holds the delimiter.
        const fits = found === (message.includes(DELIMITER) ? '' : wantedSkeleton)
        const words = found === '' ? wordsOf(kept) : [...wordsOf(found), ...wordsOf(kept)]
        const same = words.toSorted().join(' ') === wordsOf(message).toSorted().join(' ')
        return fits && same && wholeMessage(found, kept) === message
      })
    }),
    { numRuns: 300 },
  )
  t.ok(seen.split > 300 && seen.whole > 5, JSON.stringify(seen))
  t.end()
})

void test('messages of another constant text are stored whole', (t) => {
  let split = 0
  assert(
    property(
      array(literal, { minLength: 1, maxLength: 6 }),
      array(value, { minLength: 1 }),
      (literals, values) => {
        const messages = values.filter((message) => message !== '')
        return splitAll(toConstantText(literals), messages).every(([found, kept], i) => {
          if (found !== '') split++
          return wholeMessage(found, kept) === messages[i]
        })
      },
    ),
    { numRuns: 300 },
  )
  t.comment(`${split} were split`)
  t.end()
})

void test('the constant text of a template', (t) => {
  const of = (text: string): string => toConstantText(text.split(VALUE)).replaceAll(DELIMITER, '|')
  t.equal(of('user <*> logged in from <*>'), 'user | logged in from |')
  t.equal(of('all is well'), 'all is well', 'without values')
  t.equal(of('took <*>ms, v<*>.'), 'took |, |.', 'no word is split')
  t.equal(of('<*>:<*> up'), '| up', 'a sign alone is part of the value')
  t.equal(of('a <*>und<*> b'), 'a | b')
  t.equal(of('<*>'), '', 'nothing but a value')
  t.equal(of('Größe<*> cm'), '| cm', 'letters beyond ASCII are letters')
  t.equal(of(`a${DELIMITER}b <*>`), '', 'the delimiter itself')
  t.equal(of('x <*> '.repeat(300)), '', 'too many values')
  t.equal(of('x'.repeat(5000)), '', 'too long')
  t.end()
})
