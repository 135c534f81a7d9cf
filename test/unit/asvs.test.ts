/** The form of the guide `asvs`: every item is there, and what it names exists. */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const text = readFileSync(`${root}src/docs/asvs.md`, 'utf8')

/** The items of ASVS 4.0.3 up to level 2, by section: `2.1.1-12` is 2.1.1 to 2.1.12. */
const ITEMS = `
  1.1.1-7 1.2.1-4 1.4.1 1.4.4-5 1.5.1-4 1.6.1-4 1.7.1-2 1.8.1-2 1.9.1-2 1.10.1 1.11.1-2 1.12.2 1.14.1-6
  2.1.1-12 2.2.1-3 2.3.1-3 2.4.1-5 2.5.1-7 2.6.1-3 2.7.1-6 2.8.1-7 2.9.1-3 2.10.1-4
  3.1.1 3.2.1-4 3.3.1-4 3.4.1-5 3.5.1-3 3.7.1
  4.1.1-3 4.1.5 4.2.1-2 4.3.1-3
  5.1.1-5 5.2.1-8 5.3.1-10 5.4.1-3 5.5.1-4
  6.1.1-3 6.2.1-6 6.3.1-2 6.4.1-2
  7.1.1-4 7.2.1-2 7.3.1 7.3.3-4 7.4.1-3
  8.1.1-4 8.2.1-3 8.3.1-8
  9.1.1-3 9.2.1-4
  10.2.1-2 10.3.1-3
  11.1.1-8
  12.1.1-3 12.2.1 12.3.1-6 12.4.1-2 12.5.1-2 12.6.1
  13.1.1 13.1.3-5 13.2.1-3 13.2.5-6 13.3.1-2 13.4.1-2
  14.1.1-4 14.2.1-6 14.3.2-3 14.4.1-7 14.5.1-4`

const expected = ITEMS.trim()
  .split(/\s+/)
  .flatMap((range) => {
    const [, section = '', from = '', to = from] =
      /^(\d+\.\d+)\.(\d+)(?:-(\d+))?$/.exec(range) ?? []
    const count = Number(to) - Number(from) + 1
    return Array.from({ length: count }, (_, i) => `${section}.${Number(from) + i}`)
  })

const rows = [...text.matchAll(/^\| (\d+\.\d+\.\d+) \| (.+) \|$/gm)].map(
  ([, item = '', rest = '']) => {
    const [asks = '', met = '', how = '', test = ''] = rest.split(' | ')
    return { item, asks, met, how, test }
  },
)
const namesIn = (cell: string): string[] =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
const isPath = (name: string): boolean =>
  /^(?:src|test|deploy|schema|\.ci)\/|^[\w.-]+\.json$/.test(name)

t.test('every item of level 2 has its row, in order', (t) => {
  t.ok(expected.length > 250, `${expected.length} items`)
  t.same(
    rows.map(({ item }) => item),
    expected,
  )
  t.end()
})

t.test('a row says how, and what it names exists', (t) => {
  for (const { item, asks, met, how, test } of rows) {
    t.ok(['yes', 'operator', 'no', 'n/a'].includes(met), `${item}: ${met}`)
    t.ok(asks.length > 3 && how.length > 3, `${item}: what and how`)
    const missing = namesIn(how).filter((name) => isPath(name) && !existsSync(root + name))
    t.same(missing, [], item)
    const tests = namesIn(test)
    if (met === 'yes' || met === 'operator') t.not(tests.length, 0, `${item} has a test`)
    t.same(
      tests.filter((name) => !existsSync(`${root}test/${name}.test.ts`)),
      [],
      `tests of ${item}`,
    )
  }
  t.end()
})

t.test('the figures of the chapters are those of their rows', (t) => {
  const counts = [...text.matchAll(/^\| (\d+)\. .+? \| ([\d|% ]+) \|$/gm)]
  t.equal(counts.length, 14)
  for (const [, chapter = '', figures = ''] of counts) {
    const own = rows.filter(({ item }) => item.startsWith(`${chapter}.`))
    const [yes, operator, no, none] = (['yes', 'operator', 'no', 'n/a'] as const).map(
      (kind) => own.filter(({ met }) => met === kind).length,
    )
    const share = ((yes ?? 0) + (operator ?? 0)) / (own.length - (none ?? 0))
    const want = [own.length, yes, operator, no, none, `${Math.round(100 * share)} %`]
    t.equal(figures, want.join(' | '), `chapter ${chapter}`)
    t.ok(share >= 0.9, `nine of ten items of chapter ${chapter} are met`)
  }
  t.end()
})
