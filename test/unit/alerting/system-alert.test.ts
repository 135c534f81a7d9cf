import { test } from 'tap'
import { createSystemAlert, SYSTEM_RULE_ID } from '../../../src/alerting/system-alert.js'
import type { Alert } from '../../../src/records/alerts.js'

void test('one alert says that rules are not evaluated, and resolves', async (t) => {
  const made: { id: string; title: string }[] = []
  const firing = new Set<string>()
  const say = createSystemAlert({
    firingOf: (ruleId) => (ruleId === SYSTEM_RULE_ID ? [...firing] : []),
    create: async ({ id = '', title, severity }) => {
      made.push({ id, title })
      firing.add(id)
      const facts = { seq: 1, createdAtMs: 0, read: false, eventIds: [], relatedSource: null }
      return { id, title, severity, ...facts } satisfies Alert
    },
    resolve: async (id) => void firing.delete(id),
  })
  await say({ untilMs: 0, unknown: [] }, 120_000)
  t.same(made, [], 'two minutes are no reason')
  await say({ untilMs: 0, unknown: [] }, 121_000)
  await say({ untilMs: 0, unknown: ['a'] }, 131_000)
  t.equal(made.length, 1)
  t.match(made[0]?.title, /two minutes is not known/)
  await say({ untilMs: 140_000, unknown: ['a'] }, 141_000)
  t.equal(firing.size, 1, 'a rule is unknown still')
  await say({ untilMs: 140_000, unknown: [] }, 141_000)
  t.equal(firing.size, 0)
  await say({ untilMs: 150_000, unknown: ['Errors', 'b', 'c'] }, 151_000)
  t.match(made[1]?.title, /: "Errors" and 2 other rules cannot be evaluated$/)
})
