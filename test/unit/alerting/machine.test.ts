import { test } from 'tap'
import { INACTIVE, isNotified, step, type Observation } from '../../../src/alerting/machine.js'
import { MINUTE_MS, SECOND_MS } from '../../../src/model/time.js'

const START_MS = Date.UTC(2026, 0, 1)

/** A letter for each evaluation, every ten seconds: x crossed, - between the lines, o calm. */
function run(
  line: string,
  delays: { readonly forMs?: number; readonly keepFiringMs?: number } = {},
) {
  const limits = { forMs: 0, keepFiringMs: 0, ...delays }
  const verdicts: Readonly<Record<string, Observation['verdict']>> = {
    x: 'crossed',
    '-': 'between',
    o: 'calm',
  }
  let status = INACTIVE
  const made: string[] = []
  let news = 0
  Array.from(line).forEach((letter, i) => {
    const verdict = verdicts[letter] ?? 'calm'
    const stepped = step(status, limits, { atMs: START_MS + i * 10 * SECOND_MS, verdict })
    const { transition } = stepped
    if (transition !== null) {
      if (stepped.status.seq <= status.seq) throw new Error('numbers grow')
      made.push(`${i} ${transition.from}>${transition.to}`)
      if (isNotified(transition)) news++
    }
    status = stepped.status
  })
  return { made, status, news }
}

const TABLE: readonly {
  readonly line: string
  readonly forMs?: number
  readonly keepFiringMs?: number
  readonly made: readonly string[]
}[] = [
  { line: 'oooo', made: [] },
  { line: '----', made: [] },
  { line: 'oxo', made: ['1 inactive>firing', '2 firing>resolved'] },
  { line: 'x--x', made: ['0 inactive>firing'] },
  { line: 'xxx', forMs: 20_000, made: ['0 inactive>pending', '2 pending>firing'] },
  { line: 'xxo', forMs: 20_000, made: ['0 inactive>pending', '2 pending>inactive'] },
  { line: 'xx-', forMs: 20_000, made: ['0 inactive>pending', '2 pending>inactive'] },
  {
    line: 'xoooo',
    keepFiringMs: 20_000,
    made: ['0 inactive>firing', '1 firing>recovering', '3 recovering>resolved'],
  },
  {
    line: 'xoxoo',
    keepFiringMs: 20_000,
    made: [
      '0 inactive>firing',
      '1 firing>recovering',
      '2 recovering>firing',
      '3 firing>recovering',
    ],
  },
  {
    line: 'xo-o',
    keepFiringMs: 20_000,
    made: [
      '0 inactive>firing',
      '1 firing>recovering',
      '2 recovering>firing',
      '3 firing>recovering',
    ],
  },
]

void test('a group goes through its states', async (t) => {
  for (const { line, made, ...delays } of TABLE)
    t.same(run(line, delays).made, made, `${line} ${JSON.stringify(delays)}`)
})

void test('people are told when a group begins to fire and when it resolves', async (t) => {
  t.equal(run('xoxoo', { keepFiringMs: 20_000 }).news, 1)
  t.equal(run('xooo', { keepFiringMs: 20_000 }).news, 2)
})

void test('a group that flaps resolves after a quarter of an hour of calm', async (t) => {
  const { made, status } = run('xoxoxooooo')
  t.equal(status.isFlapping, true)
  t.same(made.slice(-1), ['5 firing>recovering'], 'and not resolved')
  const quiet = 'o'.repeat((15 * MINUTE_MS) / (10 * SECOND_MS))
  const after = run(`xoxox${quiet}oxo`)
  t.same(after.made.slice(-3), [
    '95 recovering>resolved',
    '96 inactive>firing',
    '97 firing>resolved',
  ])
  t.equal(after.status.isFlapping, false)
})

void test('numbers of transitions go on with time where the history is gone', async (t) => {
  const crossed = { atMs: START_MS, verdict: 'crossed' } as const
  const { status } = step(INACTIVE, { forMs: 0, keepFiringMs: 0 }, crossed)
  t.equal(status.seq, START_MS / 1000)
  t.equal(status.firingSeq, status.seq)
  const calm = { atMs: START_MS, verdict: 'calm' } as const
  t.equal(step(status, { forMs: 0, keepFiringMs: 0 }, calm).status.seq, status.seq + 1)
})
