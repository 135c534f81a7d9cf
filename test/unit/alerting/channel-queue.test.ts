import { test } from 'tap'
import {
  ChannelQueue,
  MAX_WAITING,
  toWaiting,
  type Waiting,
} from '../../../src/alerting/channel-queue.js'
import type { LoggedTransition } from '../../../src/alerting/alert-log.js'
import { INACTIVE } from '../../../src/alerting/machine.js'
import type { Labels } from '../../../src/alerting/matchers.js'

const AT = 1_000_000
const PEOPLE = { digests: 'always', perMinute: 20 } as const
const MACHINE = { digests: 'never', perMinute: 1_000 } as const
const loud = (): null => null

let made = 0
function notice(alertId: string, change: Partial<LoggedTransition> = {}): Waiting {
  const id = `n${++made}`
  return toWaiting({
    id,
    key: alertId,
    kind: 'transition',
    channelId: 'c',
    transition: {
      id,
      ruleId: 'r1',
      ruleVersion: 1,
      ruleName: 'rule',
      severity: 'P2',
      groupBy: ['host'],
      group: [alertId],
      from: 'inactive',
      to: 'firing',
      atMs: AT,
      alertId,
      value: 1,
      q: '',
      windowFromMs: 0,
      windowToMs: AT,
      reason: null,
      status: { ...INACTIVE, flips: [] },
      ...change,
    },
  })
}
const idsOf = (batch: readonly Waiting[]): readonly string[] => batch.map((one) => one.notice.id)

void test('the notices of a rule wait for one another', async (t) => {
  const queue = new ChannelQueue()
  const times = { waitMs: 10_000, intervalMs: 300_000 }
  const [a, b, c] = [
    notice('a', times),
    notice('b', { ...times, atMs: AT + 9_000 }),
    notice('c', { ...times, atMs: AT + 20_000 }),
  ]
  queue.add(a)
  queue.add(b)
  t.same(queue.take(AT + 9_999, PEOPLE, loud), { batch: [], held: [], nextMs: AT + 10_000 })
  const { batch } = queue.take(AT + 10_000, PEOPLE, loud)
  t.same(idsOf(batch), idsOf([a, b]), 'one digest')
  queue.sent(batch, AT + 10_000)
  for (const one of batch) queue.remove(one)
  queue.add(c)
  t.same(queue.take(AT + 309_999, PEOPLE, loud).batch, [])
  t.same(queue.take(AT + 310_000, PEOPLE, loud).batch, [c])
})

void test('where a message is about one alert, the notices go one by one', async (t) => {
  const queue = new ChannelQueue()
  const times = { waitMs: 10_000, intervalMs: 300_000 }
  const all = ['a', 'b', 'c'].map((alert) => notice(alert, times))
  for (const one of all) queue.add(one)
  const sent: string[] = []
  for (let i = 0; i < 3; i++) {
    const { batch } = queue.take(AT + 10_000 + i, MACHINE, loud)
    t.equal(batch.length, 1)
    queue.sent(batch, AT + 10_000 + i)
    for (const one of batch) queue.remove(one)
    sent.push(...idsOf(batch))
  }
  t.same(sent, idsOf(all))
})

void test('an alert keeps its order, and holds up no other', async (t) => {
  const queue = new ChannelQueue()
  const [fires, other, resolves] = [
    notice('a'),
    notice('b', { ruleId: 'r2' }),
    notice('a', { to: 'resolved' }),
  ]
  for (const one of [fires, other, resolves]) queue.add(one)
  fires.retryMs = AT + 60_000
  t.same(queue.take(AT, MACHINE, loud).batch, [other])
  queue.remove(other)
  t.same(queue.take(AT, MACHINE, loud).batch, [], 'the end waits for the beginning')
  t.same(queue.take(AT + 60_000, MACHINE, loud).batch, [fires])
})

void test('what is kept back waits, and the rest goes on', async (t) => {
  const queue = new ChannelQueue()
  const [quiet, loudOne] = [notice('a'), notice('b', { ruleId: 'r2' })]
  queue.add(quiet)
  queue.add(loudOne)
  const by = { by: 'silence' as const, id: 's', reason: 'why' }
  const suppressionOf = ({ group }: Labels) => (group['host'] === 'a' ? by : null)
  const first = queue.take(AT, MACHINE, suppressionOf)
  t.same([first.batch, first.held], [[loudOne], [quiet]])
  t.equal(quiet.heldBy, 'silence s: why')
  queue.remove(loudOne)
  t.same(queue.take(AT + 10_000, MACHINE, suppressionOf).held, [], 'it is told once')
  t.same(queue.heldOf('a'), [quiet])
  t.same(queue.take(AT + 20_000, MACHINE, loud).batch, [quiet])
})

void test('beyond its messages a minute a channel waits, and then sends a digest', async (t) => {
  const queue = new ChannelQueue()
  const limits = { digests: 'behind', perMinute: 1 } as const
  queue.sent([notice('z')], AT)
  const all = ['r1', 'r2', 'r3'].map((ruleId) => notice(ruleId, { ruleId }))
  for (const one of all) queue.add(one)
  t.same(queue.take(AT + 1, limits, loud), { batch: [], held: [], nextMs: AT + 60_000 })
  t.same(queue.take(AT + 60_001, limits, loud).batch, all)
})

void test('a queue is bounded', async (t) => {
  const queue = new ChannelQueue()
  for (let i = 0; i < MAX_WAITING; i++) queue.add(notice(`${i}`))
  t.notOk(queue.add(notice('one more')))
  t.equal(queue.size, MAX_WAITING)
})
