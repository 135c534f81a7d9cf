import t from 'tap'
import { regexFault } from '../../../src/query/regex.js'

t.test('characters by their number are known', async (t) => {
  for (const pattern of ['\\x{2028}', '\\x{0061}+', '[\\x{20}-\\x{7e}]{3}', '\\x{10FFFF}?'])
    t.equal(regexFault(pattern), null, pattern)
})

t.test('what RE2 does not know is found before ClickHouse is asked', async (t) => {
  const wrong = (pattern: string, part: string, message: RegExp) => {
    const fault = regexFault(pattern)
    t.match(fault?.message, message, pattern)
    t.equal(pattern.slice(fault?.at, (fault?.at ?? 0) + (fault?.length ?? 0)), part, pattern)
  }
  wrong('a(?=b)', '(?=', /look-around/)
  wrong('a(?!b)', '(?!', /look-around/)
  wrong('(?<=a)b', '(?<=', /look-around/)
  wrong('(?>a)', '(?>', /atomic/)
  wrong('(a)\\1', '\\1', /back-references/)
  wrong('a\\', '\\', /escapes nothing/)
  wrong('\\Z', '\\Z', /does not know/)
  wrong('a)', ')', /no \(/)
  wrong('a(b', '(', /no \)/)
  wrong('((b)', '(', /no \)/)
  wrong('[a', '[a', /no \]/)
  wrong('[]', '[]', /no \]/)
  wrong('[a\\]', '[a\\]', /no \]/)
  wrong('*a', '*', /nothing to repeat/)
  wrong('a|+', '+', /nothing to repeat/)
  wrong('(?i)*', '*', /nothing to repeat/)
  wrong('a**', '*', /cannot be repeated/)
  wrong('a+?+', '+', /cannot be repeated/)
  wrong('a{2}{3}', '{3}', /cannot be repeated/)
  wrong('a{1001}', '{1001}', /at most 1000/)
})

t.test('patterns that RE2 supports are accepted', async (t) => {
  for (const pattern of [
    'timeout after \\d+ ms',
    '(?i)a|b',
    '(?i:a)(?P<name>b)(?<other>c)',
    'a*?b+?c??d{2,3}?',
    'a{2,}x{,3}{',
    '[]a][^]a][[:alpha:]\\]"/]+',
    '\\Q(*\\E+\\pL\\p{Greek}\\x{1F525}\\.\\-',
    'é日🔥',
  ])
    t.equal(regexFault(pattern), null, pattern)
})
