import { test } from 'tap'
import { toWordSearch } from '../../../src/events/conditions.js'
import { toQuery } from '../../../src/events/parameters.js'
import { EVERYTHING } from '../../../src/query/ast.js'
import { findExcess } from '../../../src/query/limits.js'
import { parseQuery } from '../../../src/query/parser.js'
import { filterOf } from '../../support/event-filter.js'

const wordsOf = (search: string): readonly string[] =>
  filterOf({ search }).terms.flatMap((term) => (term.kind === 'word' ? [term.text] : []))

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

void test('so does a word with punctuation within', (t) => {
  t.same(wordsOf('Payment-Service'), ['payment', 'service'])
  t.same(wordsOf('/var/log/syslog'), ['syslog', 'var'])
  t.same(wordsOf('(web-1)'), ['web', '1'])
  t.same(wordsOf('web-1*'), ['web'], 'its end may be part of a longer one')
  t.same(wordsOf('10.0.*'), ['10', '0'])
  t.same(wordsOf('エラーcode-7'), ['code', '7'], 'a script without blanks has no words')
  t.same(wordsOf('日本語'), [])
  t.end()
})

void test('hosts are looked up by words and patterns, constant texts by words', (t) => {
  const { terms } = filterOf({ search: 'web-1 time*' })
  t.same(toWordSearch(terms, 'host')?.conditions, [
    'hasToken(lower(host), {word0:String})',
    'hasToken(lower(host), {word1:String})',
    'match(host, {word2:String})',
    'match(lower(host), {word3:String})',
  ])
  t.equal(toWordSearch(terms, 'constant_text')?.conditions[2], '0')
  const unspaced = filterOf({ search: '日本-東京' }).terms
  t.equal(toWordSearch(unspaced, 'constant_text'), null)
  t.equal(toWordSearch(unspaced, 'host')?.conditions.length, 1)
  t.equal(toWordSearch(filterOf({ search: '"a phrase"' }).terms, 'host'), null)
  t.end()
})

void test('a search has few terms, and few prefixes that nothing narrows', (t) => {
  const fault = (search: string, more = {}): string | null =>
    findExcess(toQuery({ search, ...more }, EVERYTHING))?.message ?? null
  const many = (n: number, text: string): string => `${text} `.repeat(n)
  t.equal(fault(many(16, 'word')), null)
  t.match(fault(many(17, 'word')), /16 texts/)
  t.equal(fault('a-b-c-d-e-f-g-h-i-j-k-l-m-n-o-p-q'), null, 'what is written as one is one')
  t.equal(fault(many(16, '"one two three"')), null, 'a phrase is one term')
  t.match(fault(many(17, '"one two three"')), /16 texts/)
  t.equal(fault('a* b*'), null)
  t.match(fault('a* b* c*'), /2 prefixes/)
  t.equal(fault('a* b* c* word'), null)
  t.equal(fault('a* b* c* "phrase"'), null)
  t.equal(fault('a* b* c*', { source: ['one'] }), null)
  t.equal(fault('a* b* c*', { application: 'one' }), null)
  t.equal(fault('a* b* c*', { template_id: ['0123456789abcdef'] }), null)
  t.end()
})

void test('the limits of a search are those of a query', (t) => {
  const fault = (line: string, more = {}): string | null => {
    const { query } = parseQuery(line)
    if (query === null) throw new Error(line)
    return findExcess(toQuery(more, query))?.message ?? null
  }
  const many = (n: number, text: string): string => `${text} `.repeat(n)
  t.match(fault(many(10, '-word'), { search: many(7, 'word') }), /16 texts/)
  t.equal(fault(many(10, '-word'), { search: many(6, 'word') }), null)
  t.match(fault(`message:a${',a'.repeat(16)}`), /16 texts/)
  t.equal(fault(many(32, 'user:bob')), null, 'an attribute is no search')
  t.match(
    fault(`${many(16, '-user:bob')} (${many(17, 'has:user')})`),
    /32 clauses ask for attributes/,
  )
  t.match(fault('count>1 -count>2 count:1,2 new:1h new:2h'), /4 clauses use count or new/)
  t.match(fault('a* OR b* OR -c*'), /2 prefixes/)
  t.match(fault('a* b* c* (word OR d*)'), /2 prefixes/)
  t.match(fault('a* b* c* -word'), /2 prefixes/)
  t.match(fault('message:a*,b*,c*'), /2 prefixes/)
  t.equal(fault('(a* OR b* OR c*) (word OR host:web-1)'), null)
  t.equal(fault('a* b* c*', { search: 'word' }), null)
  t.equal(fault('a* b* c* region:us,eu'), null, 'values of an attribute have an index')
  t.match(fault('a* b* c* region:u*'), /2 prefixes/)
  t.match(fault('a* b* c* -region:us ms>1 has:ms'), /2 prefixes/)
  t.end()
})
