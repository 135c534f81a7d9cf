import { test } from 'tap'
import { TemplateShares } from '../../../src/templates/shares.js'

/** Lets each source take all that it gets, in turns. */
function fill(shares: TemplateShares, sources: readonly string[]): readonly number[] {
  const counts = new Map(sources.map((source) => [source, 0]))
  for (let isTaken = true; isTaken;) {
    isTaken = false
    for (const source of sources) {
      if (!shares.hasRoom(source)) continue
      shares.add(source)
      counts.set(source, (counts.get(source) ?? 0) + 1)
      isTaken = true
    }
  }
  return [...counts.values()]
}

const named = (name: string, n: number): readonly string[] =>
  Array.from({ length: n }, (_, i) => `${name}-${i}`)

void test('greedy sources leave as much to a new one as each of them has', async (t) => {
  t.same(fill(new TemplateShares(), ['one']), [2_913])
  for (const greedy of [2, 40, 1_000]) {
    const shares = new TemplateShares()
    const counts = fill(shares, named('greedy', greedy))
    const [fresh = 0] = fill(shares, ['fresh'])
    const [most = 0] = counts.toSorted((a, b) => b - a)
    t.ok(most - Math.min(...counts) <= 1, `${greedy} have ${most} each`)
    t.ok(fresh >= most * 0.9 - 1, `a new one gets ${fresh}`)
    t.ok(shares.used < 100_000)
  }
})

void test('the sources of one key get half of the templates together', async (t) => {
  const shares = new TemplateShares()
  const own = named('own', 1_000)
  for (const source of own) shares.setOwner(source, 'key')
  const [each = 0] = fill(shares, own)
  t.ok(shares.used > 45_000 && shares.used < 50_000, `${shares.used} templates`)
  shares.setOwner('own-new', 'key')
  shares.setOwner('other', 'another key')
  const [same = 0] = fill(shares, ['own-new'])
  t.ok(same >= each * 0.9 - 1, `${same} for a new source of the key`)
  const [other = 0] = fill(shares, ['other'])
  t.ok(other > 1_400, `${other} for a source of another key`)
})

void test('a source that another key registers anew counts for that key', async (t) => {
  const shares = new TemplateShares({ templates: 100, share: 0.5 })
  shares.setOwner('a', 'first')
  for (let i = 0; i < 10; i++) shares.add('a')
  t.equal(shares.shareOf('first'), 0.5 * 80)
  shares.setOwner('a', 'second')
  t.equal(shares.shareOf('first'), 0.5 * 90)
  t.equal(shares.shareOf('second'), 0.5 * 80)
  t.equal(shares.shareOf(''), 0.5 * 90)
})
