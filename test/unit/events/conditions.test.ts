import { test } from 'tap'
import { toWordSearch } from '../../../src/events/conditions.js'

const wordsOf = (search: string): readonly unknown[] =>
  Object.values(toWordSearch(search, 'constant_text')?.params ?? {})

void test('a phrase uses the index for its longest complete words', (t) => {
  t.same(wordsOf('"sorry, too many clients"'), ['many', 'too'])
  t.same(wordsOf('"/Var/Log/syslog was rotated"'), ['syslog', 'var'])
  t.same(wordsOf('"too too too many"'), ['too'], 'once')
  t.same(wordsOf('"one two"'), [], 'its ends may be parts of longer words')
  t.same(wordsOf('"a é17 17é b"'), [], 'a letter beyond ASCII may belong to the word')
  t.same(wordsOf('"- 17 -"'), ['17'])
  t.same(wordsOf('disk "is at all full"'), ['disk', 'all', 'at'])
  t.end()
})
