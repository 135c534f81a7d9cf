import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { CATALOGUE, ESSENTIAL } from '../../faults/catalogue/all.js'
import { delaying, judge, lostIn } from '../../faults/promptness.js'
import { readResults, withFault, withSabotage, withSeed } from '../../faults/results.js'
import { SABOTAGES, sabotagedText } from '../../faults/sabotage.js'
import { intoGuide, renderTables } from '../../faults/table.js'

void test('names of faults lead to faults', async (t) => {
  const ids = CATALOGUE.map(({ id }) => id)
  t.equal(new Set(ids).size, ids.length, 'each is there once')
  for (const id of [...ESSENTIAL, ...SABOTAGES.map(({ caughtBy }) => caughtBy)])
    t.ok(ids.includes(id), id)
})

void test('each invariant that is to be broken on purpose has its place in the program', async (t) => {
  for (const sabotage of SABOTAGES)
    t.ok(sabotagedText(sabotage).includes(sabotage.to), sabotage.title)
  t.throws(() => sabotagedText({ id: 'x', file: 'main.js', from: 'no such text', to: '' }))
})

void test('outcomes of several runs add up in the tables', async (t) => {
  const [fault] = CATALOGUE
  const [sabotage] = SABOTAGES
  if (fault === undefined || sabotage === undefined) throw new Error('bug: there is none')
  const result = { fault, seed: 1, rounds: 2, acknowledged: 40, lost: 0, doubled: 0 }
  const fine = { ...result, problems: [], skipped: null, seconds: 1 }
  let results = withSeed(readResults(null), 7)
  results = withFault(results, { ...fine, rounds: 0, acknowledged: 0, skipped: 'no root' })
  t.match(renderTables(results), `| ${fault.title} | not tried: no root | 0 | 0 | 0 |`)
  results = withFault(withFault(withSeed(results, 8), fine), fine)
  t.match(renderTables(results), `| ${fault.title} | 4 | 80 | 0 | 0 |`)
  results = withFault(results, { ...fine, lost: 3, problems: ['three are lost'] })
  results = withSabotage(results, { sabotage, by: null, lost: 0, doubled: 0 })
  const text = intoGuide(
    'a <!-- faults: written by `npm run test:faults -- --docs` --> b <!-- /faults --> c',
    renderTables(results),
  )
  t.match(text, `| ${fault.title} | 6 (1 not survived as it must be) | 120 | 3 | 0 |`)
  t.match(text, '| together | 6 | 120 | 3 | 0 |')
  t.match(text, `| ${sabotage.title} | nothing | 0 | 0 |`)
  t.match(text, 'seeds 7, 8.')
  t.notMatch(text, /^a .* b /)
  t.throws(() => intoGuide('a guide without a place', ''))
})

void test('an answer is late when it took more than is promised, without what the machine took', async (t) => {
  t.equal(judge('health', 2_900, 0), null, 'the allowance')
  t.match(judge('health', 3_100, 0), /3.10 s, 0.00 s of them lag of the machine; 2 s are promised/)
  t.equal(judge('health', 9_000, 6_500), null)
  t.match(judge('answer', 31_500, 400), /30 s are promised/)
  const lags = [
    { fromMs: 0, endMs: 1_000, lagMs: 900 },
    { fromMs: 1_000, endMs: 1_020, lagMs: 0 },
    { fromMs: 1_020, endMs: 1_220, lagMs: 180 },
  ]
  const lost = (fromMs: number, toMs: number): number => lostIn(lags, { fromMs, toMs })
  t.equal(lost(1_220, 5_000), 0)
  t.equal(lost(1_120, 5_000), 90, 'half of what it was in the middle of')
  t.equal(lost(-5, 5_000), 1_080)
  t.equal(lost(500, 1_010), 450)
  t.same(
    delaying('answer', { fromMs: 100, toMs: 31_000 }),
    [
      { fromMs: 100, toMs: 2_100 },
      { fromMs: 30_100, toMs: 31_000 },
    ],
    'what the machine took in between delays no deadline',
  )
  t.same(delaying('health', { fromMs: 0, toMs: 500 }), [
    { fromMs: 0, toMs: 500 },
    { fromMs: 500, toMs: 500 },
  ])
})

void test('every fault of the guide to reliability is one of the catalogue', async (t) => {
  const guide = readFileSync(
    new URL('../../../../src/docs/reliability.md', import.meta.url),
    'utf8',
  )
  const rows = [...guide.matchAll(/^\| (.+?) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$/gm)]
  const [faults, sums] = [rows.slice(0, -1), rows.at(-1) ?? []]
  t.ok(faults.length > 30, `${faults.length} faults`)
  const titles: readonly string[] = CATALOGUE.map(({ title }) => title)
  for (const [, title = ''] of faults) t.ok(titles.includes(title), title)
  const sum = (column: number): string =>
    String(faults.reduce((total, row) => total + Number(row[column]), 0))
  t.same(sums.slice(1), ['together', sum(2), sum(3), sum(4), sum(5)])
})
