import fc from 'fast-check'
import { test } from 'tap'
import { contributionsOf } from '../../../src/insights/explanation.js'
import { mlHealthOf, type MlFacts } from '../../../src/insights/ml-health.js'
import { expectedRange, surprise, twoSidedChance } from '../../../src/insights/negative-binomial.js'
import { quantileOf } from '../../../src/insights/quantile.js'

const mean = fc.double({ min: 0.1, max: 1e6, noNaN: true })
const dispersion = fc.double({ min: 0, max: 3, noNaN: true })

test('the further a count is from its mean, the more surprising it is', async (t) => {
  fc.assert(
    fc.property(mean, dispersion, fc.double({ min: 1.1, max: 100, noNaN: true }), (mu, phi, f) => {
      t.ok(surprise(mu * f, mu, phi) > 0 && surprise(mu / f, mu, phi) < 0)
      t.ok(surprise(mu * f * 2, mu, phi) > surprise(mu * f, mu, phi))
      t.ok(surprise(mu / f / 2, mu, phi) < surprise(mu / f, mu, phi))
    }),
    { numRuns: 50 },
  )
})

test('a wider spread makes the same count less surprising', async (t) => {
  t.ok(surprise(150, 100, 0.1) > surprise(150, 100, 0.3))
  t.ok(Math.abs(surprise(130, 100, 0) - 3) < 0.3, 'about (130 − 100) / √100 without any')
})

test('the expected range holds exactly what is within the width', async (t) => {
  fc.assert(
    fc.property(mean, dispersion, (mu, phi) => {
      const [least, most] = expectedRange(mu, phi, 2.576)
      t.ok(least <= mu && most >= mu)
      t.ok(surprise(most * 1.02 + 1, mu, phi) > 2.576)
      t.ok(least === 0 || surprise(least * 0.98 - 1, mu, phi) < -2.5)
    }),
    { numRuns: 50 },
  )
})

test('the chance of a normal deviate is that of the tables', async (t) => {
  const table = [
    [0, 1],
    [1.96, 0.05],
    [2.576, 0.01],
    [4, 6.334e-5],
    [6, 1.973e-9],
  ] as const
  for (const [z, chance] of table)
    t.ok(Math.abs(twoSidedChance(z) / chance - 1) < 0.02, `${z}: ${twoSidedChance(z)}`)
})

test('a quantile is what sorting gives', async (t) => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ noNaN: true }), { minLength: 1, maxLength: 60 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (values, share) => {
        const sorted = Float64Array.from(values).sort()
        const wanted = sorted[Math.round(share * (values.length - 1))]
        t.equal(quantileOf(Float64Array.from(values), values.length, share), wanted)
      },
    ),
  )
})

test('contributors are ordered by the share of the change that they explain', async (t) => {
  const counted = [
    { name: 'steady', before: 1000, during: 500 },
    { name: 'burst', before: 10, during: 905 },
    { name: 'helper', before: 0, during: 100 },
  ]
  const found = contributionsOf(counted, { beforeHours: 10, duringHours: 5 })
  t.same(
    found.map(({ name, before, during, explains }) => ({ name, before, during, explains })),
    [
      { name: 'burst', before: 1, during: 181, explains: 0.9 },
      { name: 'helper', before: 0, during: 20, explains: 0.1 },
    ],
    'a steady rate explains nothing',
  )
  const unnamed = { name: '', before: 0, during: 1000 }
  const [first, ...others] = contributionsOf([...counted, unnamed], {
    beforeHours: 10,
    duringHours: 5,
  })
  t.match(first, { name: 'burst', explains: 0.45 }, 'counts without a name belong to the sum')
  t.notOk(
    others.some(({ name }) => name === ''),
    'and are not listed',
  )
  t.same(contributionsOf([], { beforeHours: 1, duringHours: 1 }), [])
})

test('what has notably more errors comes first, whatever became less', async (t) => {
  const none = { before: 0, during: 0 }
  const counted = [
    { name: 'orders', before: 9000, during: 4000, errors: none },
    { name: 'steady errors', before: 100, during: 104, errors: { before: 100, during: 104 } },
    { name: 'new error', before: 0, during: 40, errors: { before: 0, during: 40 } },
    { name: 'one error', before: 0, during: 1, errors: { before: 0, during: 1 } },
    { name: 'more errors', before: 50, during: 120, errors: { before: 50, during: 120 } },
  ]
  const found = contributionsOf(counted, { beforeHours: 1, duringHours: 1 })
  t.same(
    found.map(({ name, hasMoreErrors }) => [name, hasMoreErrors]),
    [
      ['more errors', true],
      ['new error', true],
      ['orders', false],
    ],
  )
})

const FACTS: MlFacts = {
  dataAgeHours: 0,
  routine: 100,
  novel: 0,
  routineEvents: 100,
  unsureEvents: 0,
  corrections: 0,
  agreeing: 0,
}

test('health falls with unsure priorities, new templates, disagreement and age', async (t) => {
  t.equal(mlHealthOf(FACTS).score, 1)
  const worse = [
    { unsureEvents: 50 },
    { novel: 25 },
    { corrections: 10, agreeing: 2 },
    { dataAgeHours: 20 },
  ]
  for (const change of worse) {
    const { score } = mlHealthOf({ ...FACTS, ...change })
    t.ok(score < 0.95 && score > 0, JSON.stringify(change))
  }
  t.equal(mlHealthOf({ ...FACTS, corrections: 4, agreeing: 3 }).agreement, 0.75)
  t.equal(mlHealthOf(FACTS).agreement, null)
})
