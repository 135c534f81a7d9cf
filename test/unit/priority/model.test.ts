import * as fc from 'fast-check'
import t from 'tap'
import { PriorityModel } from '../../../src/priority/model.js'
import { PRIORITIES, SEVERITIES, type Priority, type Severity } from '../../../src/model/event.js'

/** Seeded random numbers in 0..1. */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0
    return (state >>> 0) / 2 ** 32
  }
}

const SYLLABLES = 'ba ko ri tu me sa lo di pe nu ga fi'.split(' ')
const WORDS = SYLLABLES.flatMap((a) => SYLLABLES.flatMap((b) => [`${a}${b}n`, `${b}${a}sk`]))

/** Templates of 4 to 8 generated words, some with a word of the hidden rule. */
function templates(
  count: number,
  rule: readonly string[],
  share: number,
  next: () => number,
): string[] {
  const pick = (list: readonly string[]) => list[Math.floor(next() * list.length)] ?? ''
  return Array.from({ length: count }, () => {
    const words = Array.from({ length: 4 + Math.floor(next() * 5) }, () => pick(WORDS))
    if (next() < share) words.splice(Math.floor(next() * words.length), 0, pick(rule))
    return words.join(' <*> ')
  })
}

const has = (text: string, rule: readonly string[]): boolean =>
  rule.some((word) => text.split(' ').includes(word))

function assigned(model: PriorityModel, no: number, severity: Severity): Priority {
  model.assign(no, SEVERITIES.indexOf(severity), 1_700_000_000, 1)
  return PRIORITIES[model.priority] ?? 'P4'
}

t.test('severity alone orders priorities', async (t) => {
  const model = new PriorityModel()
  model.register(1, 'lorem ipsum dolor')
  const all = SEVERITIES.map((severity) => assigned(model, 1, severity))
  t.same(all, ['P4', 'P4', 'P3', 'P2', 'P1'])
})

t.test('words of the template raise and lower the priority', async (t) => {
  const model = new PriorityModel()
  model.register(1, 'data corruption detected on volume <*>')
  model.register(2, 'retrying request <*>, recovered successfully')
  t.equal(assigned(model, 1, 'ERROR'), 'P1')
  t.equal(assigned(model, 2, 'WARNING'), 'P4')
})

t.test('words that are properties of Object.prototype are ordinary words', async (t) => {
  const model = new PriorityModel()
  model.register(1, 'no constructor of lorem found')
  model.register(2, 'ipsum dolor')
  const { score, contributions } = model.explain(1, 'ERROR', 'no constructor of lorem found')
  t.ok(Number.isFinite(score))
  t.ok(contributions.every(({ points }) => Number.isFinite(points)))
  t.equal(assigned(model, 1, 'ERROR'), 'P2')
})

t.test('a burst and a rare template raise the score', async (t) => {
  const model = new PriorityModel()
  model.register(1, 'steady news')
  model.register(2, 'seldom news')
  for (let s = 0; s < 600; s++) model.assign(1, 2, 1_700_000_000 + s, 5)
  const calm = model.explain(1, 'WARNING', 'steady news').score
  model.assign(1, 2, 1_700_000_600, 5000)
  t.ok(model.explain(1, 'WARNING', 'steady news').score > calm, 'burst')
  model.assign(2, 2, 1_700_000_600, 1)
  const rare = model.explain(2, 'WARNING', 'seldom news').contributions
  t.ok(
    rare.some(({ feature, points }) => feature === 'rarity' && points > 0),
    'rarity',
  )
})

t.test('unseen templates follow corrections by a hidden rule', async (t) => {
  const cases: readonly (readonly [readonly string[], Priority])[] = [
    [['payment', 'ledger'], 'P1'],
    [['payment', 'ledger', 'vault'], 'P2'],
    [['chatter'], 'P4'],
  ]
  const severities = ['INFO', 'WARNING', 'ERROR'] as const
  for (const [rule, priority] of cases) {
    const next = random(7)
    const model = new PriorityModel()
    const texts = templates(400, rule, 0.4, next)
    for (const [i, text] of texts.entries()) model.register(i + 1, text)
    const severityOf = (i: number) => severities[i % severities.length] ?? 'INFO'
    const before = texts.map((_, i) => assigned(model, i + 1, severityOf(i)))
    const ruled = texts.flatMap((text, i) => (has(text, rule) ? [i] : []))
    for (const i of ruled.slice(0, 50)) model.learn(i + 1, severityOf(i), priority, texts[i] ?? '')

    const unseen = ruled.slice(50)
    const right = unseen.filter((i) => assigned(model, i + 1, severityOf(i)) === priority)
    t.ok(right.length >= 0.9 * unseen.length, `${right.length} of ${unseen.length} are ${priority}`)
    const others = texts.flatMap((text, i) => (has(text, rule) ? [] : [i]))
    const unchanged = others.filter((i) => assigned(model, i + 1, severityOf(i)) === before[i])
    t.ok(
      unchanged.length >= 0.95 * others.length,
      `${unchanged.length} of ${others.length} others are unchanged`,
    )
  }
})

t.test('a template learned later than the corrections follows them too', async (t) => {
  const model = new PriorityModel()
  for (let i = 1; i <= 5; i++) {
    model.learn(i, 'WARNING', 'P1', `invoice ${WORDS[i]} could not be printed by ${WORDS[i + 20]}`)
  }
  model.register(9, 'invoice could not be printed, paper jam in <*>')
  t.equal(assigned(model, 9, 'WARNING'), 'P1')
})

t.test('critical never falls below P2, debug never rises above P3', async (t) => {
  const priority = fc.constantFrom(...PRIORITIES)
  const severity = fc.constantFrom(...SEVERITIES)
  const text = fc.array(fc.constantFrom(...WORDS, 'panic', 'corrupt', 'success'), { maxLength: 6 })
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.array(fc.tuple(text, severity, priority), { maxLength: 12 }), (learned) => {
        const model = new PriorityModel()
        for (const [i, [words, level, want]] of learned.entries()) {
          model.learn(i + 1, level, want, words.join(' '))
        }
        return learned.every((_, i) => {
          const critical = assigned(model, i + 1, 'CRITICAL')
          const debug = assigned(model, i + 1, 'DEBUG')
          const sure = model.confidence >= 0 && model.confidence <= 1
          return (
            sure && (critical === 'P1' || critical === 'P2') && (debug === 'P3' || debug === 'P4')
          )
        })
      }),
      { numRuns: 40 },
    ),
  )
})

t.test(
  'each correction changes the version, and a restart restores model and version',
  async (t) => {
    const model = new PriorityModel()
    const version = model.modelVersion
    const texts = templates(60, ['vault'], 0.5, random(3))
    for (const [i, text] of texts.entries()) model.register(i + 1, text)
    t.equal(model.modelVersion, version, 'registering teaches nothing')
    for (let i = 0; i < 20; i++) model.learn(i + 1, 'INFO', 'P2', texts[i] ?? '')
    t.not(model.modelVersion, version)

    const restored = new PriorityModel()
    for (const [i, text] of texts.entries()) restored.register(i + 1, text)
    restored.restore(JSON.parse(JSON.stringify(model)))
    t.equal(restored.modelVersion, model.modelVersion)
    for (let no = 1; no <= texts.length; no++) {
      t.equal(assigned(restored, no, 'INFO'), assigned(model, no, 'INFO'), `template ${no}`)
    }
  },
)

t.test('the parts of an explanation add up to the score', async (t) => {
  const model = new PriorityModel()
  const text = 'disk full on node <*>'
  model.learn(1, 'ERROR', 'P1', text)
  model.assign(1, SEVERITIES.indexOf('ERROR'), 1_700_000_000, 1)
  const { priority, confidence } = model
  const explained = model.explain(1, 'ERROR', text)
  t.equal(explained.priority, PRIORITIES[priority])
  t.equal(explained.confidence, confidence)
  t.ok(Number.isInteger(confidence * 64), 'confidences are in steps')
  const sum = explained.contributions.reduce((all, { points }) => all + points, 0)
  t.ok(Math.abs(sum - explained.score) < 0.05, `${sum} is ${explained.score}`)
  const chance = Object.values(explained.chances).reduce((a, b) => a + b, 0)
  t.ok(Math.abs(chance - 1) < 1e-9, 'the chances add up to 1')
  t.ok(explained.contributions.some(({ feature }) => feature === 'word:full'))
})

t.test('confidence is not greater than the agreement of the corrections', async (t) => {
  // The corrections follow the rule in 4 of 5 cases.
  const next = random(11)
  const model = new PriorityModel()
  const texts = templates(400, ['vault'], 1, next)
  for (const [i, text] of texts.entries()) model.register(i + 1, text)
  const wanted = texts.map((): Priority => (next() < 0.8 ? 'P2' : 'P3'))
  for (let i = 0; i < 60; i++) model.learn(i + 1, 'INFO', wanted[i] ?? 'P2', texts[i] ?? '')
  const unseen = wanted.slice(60).map((want, i) => {
    const right = assigned(model, i + 61, 'INFO') === want ? 1 : 0
    return { right, claimed: model.confidence }
  })
  const mean = (of: (one: { right: number; claimed: number }) => number) =>
    unseen.reduce((sum, one) => sum + of(one), 0) / unseen.length
  const [right, claimed] = [mean((one) => one.right), mean((one) => one.claimed)]
  t.ok(right > 0.6, `right in ${right}`)
  t.ok(claimed - right < 0.1 && right - claimed < 0.25, `claims ${claimed}, is right in ${right}`)
})

t.test('templates beyond the limit are scored by severity', async (t) => {
  const model = new PriorityModel(10)
  model.register(1_000_000, 'data corruption')
  t.equal(assigned(model, 1_000_000, 'INFO'), 'P4')
})
