import * as fc from 'fast-check'
import t from 'tap'
import { matches, mergeGaps, templateValues } from '../../../src/templates/template-text.js'

t.test('values are found between the constant words', async (t) => {
  t.same(templateValues('took <*> ms', 'took 15 ms'), ['15'])
  t.same(templateValues('<*> to <*>', 'a b to c'), ['a b', 'c'])
  t.same(templateValues('ready', 'ready'), [])
  t.same(templateValues('user <*> from <*>', 'user  alice   from 10.0.0.1 '), ['alice', '10.0.0.1'])
  t.same(templateValues('a <*> b', 'a b'), [''], 'a value may be empty')
  t.same(templateValues('rhost=<*> user=<*>', 'rhost= user='), ['', ''])
})

t.test('a message of another template has no values', async (t) => {
  t.equal(templateValues('took <*> ms', 'took 15 s'), null)
  t.equal(templateValues('took <*> ms', 'it took 15 ms'), null)
  t.equal(templateValues('ready', 'ready now'), null)
  t.equal(templateValues('a <*> a', 'a'), null)
})

t.test('a merged gap covers both gaps', async (t) => {
  const gap = fc.array(fc.constantFrom(' ', ', ', ': ', '<*>', 'x1', '(', ')', '=', '.'), {
    maxLength: 8,
  })
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(gap, gap, (a, b) => {
        const [x, y] = [a.join(''), b.join('')]
        const merged = mergeGaps(x, y)
        const covers = (text: string) => matches(`w${merged}w`, `w${text.replaceAll('<*>', '7')}w`)
        return covers(x) && covers(y)
      }),
    ),
  )
})

t.test('a merged gap has the punctuation of both gaps', async (t) => {
  t.equal(mergeGaps(' x1, ', ' x2, '), ' <*>, ')
  t.equal(mergeGaps(' (<*>) ', ' (<*> of <*>) '), ' (<*>) ')
  t.equal(mergeGaps(' ', ' <*> '), ' <*> ')
})
