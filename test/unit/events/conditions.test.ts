import { test } from 'tap'
import { searchFault, toWordSearch } from '../../../src/events/conditions.js'
import { NO_FILTER } from '../../support/event-filter.js'

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

void test('a search has few terms, and few prefixes that nothing narrows', (t) => {
  const fault = (search: string, more = {}): string | null =>
    searchFault({ ...NO_FILTER, search, ...more })
  const many = (n: number, text: string): string => `${text} `.repeat(n)
  t.equal(fault(many(16, 'word')), null)
  t.match(fault(many(17, 'word')), /16 terms/)
  t.match(fault('a-b-c-d-e-f-g-h-i-j-k-l-m-n-o-p-q'), /16 terms/, 'words that are written as one')
  t.equal(fault(many(16, '"one two three"')), null, 'a phrase is one term')
  t.match(fault(many(17, '"one two three"')), /16 terms/)
  t.equal(fault('a* b*'), null)
  t.match(fault('a* b* c*'), /2 prefixes/)
  t.equal(fault('a* b* c* word'), null)
  t.equal(fault('a* b* c* "phrase"'), null)
  t.equal(fault('a* b* c*', { sources: ['one'] }), null)
  t.equal(fault('a* b* c*', { templateIds: ['0123456789abcdef'] }), null)
  t.end()
})
