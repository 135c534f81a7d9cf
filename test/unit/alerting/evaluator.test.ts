import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import type { Channel } from '../../../src/alerting/channel.js'
import { Evaluator, type EvaluatorDeps } from '../../../src/alerting/evaluator.js'
import type { LoggedTransition } from '../../../src/alerting/alert-log.js'
import { Ongoing } from '../../../src/alerting/ongoing.js'
import type { Rule } from '../../../src/alerting/rule.js'
import type { RuleFields } from '../../../src/alerting/rule-fields.js'
import type { Evaluated } from '../../../src/alerting/system-alert.js'
import { createInProcessState } from '../../../src/coordination/memory-state.js'
import { AppError } from '../../../src/model/errors.js'
import { MINUTE_MS, SECOND_MS } from '../../../src/model/time.js'
import { createLog } from '../../../src/telemetry/log.js'
import { TRANSITION } from '../../support/transition.js'

/** When the first message arrives; the evaluator is alive since then. */
const T0 = Math.ceil(Date.now() / MINUTE_MS) * MINUTE_MS

const toRule = (fields: Partial<RuleFields>, version = 1): Rule => ({
  id: 'r',
  version,
  createdAtMs: 0,
  updatedAtMs: 0,
  updatedBy: 'u',
  fields: {
    name: 'rule',
    severity: 'P2',
    kind: { type: 'threshold', window: '5m', op: '>', fire: 10 },
    for: '1m',
    keep_firing_for: '0s',
    ...fields,
  },
})

const toChannel = (id: string): Channel => ({
  id,
  version: 1,
  createdAtMs: 0,
  updatedAtMs: 0,
  updatedBy: 'u',
  fields: { name: id, enabled: true, sealedTarget: '' },
})

/** A world in which messages arrive and are stored; time is when it says so. */
function createWorld(arrivals: Readonly<Record<number, number>>) {
  const log: LoggedTransition[] = []
  /** What was inserted together. */
  const inserts: (readonly string[])[] = []
  const told: Evaluated[] = []
  const world = {
    rule: toRule({}),
    /** Everything that arrived before is stored; seconds after T0. */
    storedS: 0,
    isAway: false,
    /** How many times the alerts of transitions can't be written. */
    failingProjections: 0,
    isShared: true,
    hasSource: true,
    /** The values of the fields that the rule groups by. */
    group: [] as readonly string[],
    /** What channels were told: their id, and what of. */
    notices: [] as string[],
    /** How long a question takes. */
    questionMs: 0,
    rounds: 0,
    log,
    inserts,
    told,
    state: createInProcessState({ onError: () => undefined }),
    transitions: () =>
      log.map(({ from, to, atMs, value }) => `${(atMs - T0) / SECOND_MS}s ${from}>${to} ${value}`),
  }
  const orFail = (isAway = world.isAway): void => {
    if (isAway) throw new AppError('dependency_unavailable', 'clickhouse is away')
  }
  const deps: EvaluatorDeps = {
    state: world.state,
    log: createLog('silent'),
    alertLog: {
      append: async (made) => {
        orFail()
        log.push(...made)
        inserts.push(made.map(({ to }) => to))
      },
      last: async () => {
        orFail()
        return log.slice(-1)
      },
      history: async () => [],
    },
    counts: {
      canShare: () => world.isShared,
      read: async (requests, { fromMs, toMs }) => {
        orFail()
        await sleep(world.questionMs)
        return requests.map(({ everyMs }) =>
          Object.entries(arrivals)
            .map(([second, count]) => ({ atMs: T0 + Number(second) * SECOND_MS, count }))
            .filter(({ atMs }) => atMs >= fromMs && atMs < toMs)
            .map(({ atMs, count }) => ({
              slot: Math.floor(atMs / everyMs),
              group: world.group,
              count,
            })),
        )
      },
    },
    watermark: { now: async () => T0 + world.storedS * SECOND_MS },
    rules: { list: () => [world.rule] },
    hasSource: () => world.hasSource,
    project: async (transitions) => {
      if (transitions.length > 0 && world.failingProjections-- > 0) orFail(true)
    },
    systemAlert: async (evaluated) => {
      world.rounds++
      told.push(evaluated)
    },
    delivery: {
      deliveryLog: {
        record: () => undefined,
        close: async () => undefined,
        of: async () => new Map(),
        recent: async function* () {
          yield []
        },
        receiptOf: async () => null,
      },
      channels: { find: toChannel, targetOf: () => ({ type: 'webhook', url: 'http://c' }) },
      suppressionOf: () => null,
      send: async (_, { notices }) => {
        for (const { channelId, kind, transition } of notices) {
          const { to, ruleName, severity } = transition
          world.notices.push(`${channelId} ${kind} ${to} ${severity} ${ruleName}`)
        }
        return { outcome: 'sent', status: 200, latencyMs: 0, error: null, receipt: null }
      },
      factsOf: async () => ({ usual: null, samples: [], links: null }),
      isAcknowledged: () => false,
      log: createLog('silent'),
    },
  }
  /** Stores what arrived until then, and waits until it was judged. */
  const store = async (untilS: number): Promise<void> => {
    world.storedS = untilS
    const before = world.rounds
    while (world.rounds < before + 2) await sleep(10)
  }
  const start = (): Evaluator => {
    const evaluator = new Evaluator(deps)
    evaluator.start(true)
    return evaluator
  }
  return { world, store, start }
}

void test('what a store misses in ten minutes is judged in order when it is back', async (t) => {
  const { world, store, start } = createWorld({ 5: 20, 20: 1 })
  const evaluator = start()
  await store(30)
  const before = ['10s inactive>pending 20']
  t.same(world.transitions(), before)
  world.isAway = true
  await store(30)
  await store(31)
  t.same(world.transitions(), before, 'nothing fires and nothing resolves meanwhile')
  t.equal(world.told.at(-1)?.untilMs, T0 + 30 * SECOND_MS, 'it is known since when')
  world.isAway = false
  await store(660)
  t.same(world.transitions(), [...before, '70s pending>firing 21', '310s firing>resolved 1'])
  t.equal(new Set(world.log.map(({ id }) => id)).size, 3)
  await evaluator.close()
})

void test('the end of an alert is stored after its beginning is an alert', async (t) => {
  const { world, store, start } = createWorld({ 5: 20 })
  world.rule = toRule({ for: '0s' })
  const evaluator = start()
  await store(400)
  await evaluator.close()
  t.same(world.transitions(), ['10s inactive>firing 20', '310s firing>resolved 0'])
  t.same(world.inserts, [['firing'], ['resolved']])
})

void test('the end of an alert is not lost when the alert could not be written', async (t) => {
  const { world, store, start } = createWorld({ 5: 20 })
  Object.assign(world, { rule: toRule({ for: '0s' }), failingProjections: 1 })
  const evaluator = start()
  await store(400)
  await store(401)
  await evaluator.close()
  t.same(world.transitions(), ['10s inactive>firing 20', '310s firing>resolved 0'])
})

void test('a restart in the middle of `for` changes nothing', async (t) => {
  const { world, store, start } = createWorld({ 5: 20 })
  const first = start()
  await store(30)
  await first.close()
  const second = start()
  await store(60)
  await second.close()
  t.same(world.transitions(), ['10s inactive>pending 20'])
  const third = start()
  await store(80)
  await third.close()
  t.same(world.transitions(), ['10s inactive>pending 20', '70s pending>firing 20'])
})

void test('a rule that changes while it fires goes on where it means the same', async (t) => {
  const { world, store, start } = createWorld({ 5: 20, 400: 30 })
  world.rule = toRule({ for: '0s' })
  const evaluator = start()
  await store(30)
  world.rule = toRule({ for: '0s', name: 'renamed', severity: 'P1' }, 2)
  await store(60)
  t.same(world.transitions(), ['10s inactive>firing 20'], 'another name is no other alert')
  const kind = { type: 'threshold', window: '5m', op: '>', fire: 25 } as const
  world.rule = toRule({ for: '0s', kind }, 3)
  await store(90)
  t.match(world.log.slice(1), [{ from: 'firing', to: 'resolved', reason: 'the rule was changed' }])
  world.log.pop()
  await store(420)
  t.match(world.transitions().slice(1), [/^4[012]0s inactive>firing 30$/])
  t.equal(new Set(world.log.map(({ alertId }) => alertId)).size, 2, 'two alerts')
  await evaluator.close()
})

void test('a rule with a question of its own, which takes long, is asked at its own times', async (t) => {
  const judged = async (isShared: boolean): Promise<readonly string[]> => {
    const { world, store, start } = createWorld({ 3: 20 })
    Object.assign(world, { isShared, questionMs: 500, rule: toRule({ for: '0s' }) })
    const evaluator = start()
    await store(1)
    await store(2)
    await store(6)
    await store(11)
    await evaluator.close()
    return world.transitions()
  }
  t.same(await judged(true), ['6s inactive>firing 20'], 'others are asked early')
  t.same(await judged(false), ['10s inactive>firing 20'])
})

const notifying = (...channels: readonly string[]): Partial<RuleFields> => ({
  for: '0s',
  notify: { channels: [...channels], group_wait: '0s', group_interval: '0s', repeat: 'never' },
})

/** What channels were told, when they were told so much. */
async function untilNotices(notices: readonly string[], count: number): Promise<readonly string[]> {
  while (notices.length < count) await sleep(10)
  return notices.toSorted()
}

void test('whoever was told that an alert fires is told its end, by the same name', async (t) => {
  const { world, store, start } = createWorld({ [-300]: 20 })
  const earlier: Rule[] = []
  const change = (fields: Partial<RuleFields>): void => {
    earlier.unshift(world.rule)
    world.rule = { ...toRule(fields, world.rule.version + 1), earlier: [...earlier] }
  }
  world.rule = toRule(notifying('a', 'b'))
  const first = start()
  await store(-280)
  t.same(await untilNotices(world.notices, 2), [
    'a transition firing P2 rule',
    'b transition firing P2 rule',
  ])
  world.notices.length = 0
  change({ ...notifying('b', 'c'), name: 'renamed', severity: 'P1' })
  await store(-270)
  t.same(await untilNotices(world.notices, 1), ['c transition firing P2 rule'], 'the new one')
  await first.close()
  world.notices.length = 0
  // As long as it stood still.
  change({ ...notifying('c', 'd'), name: 'renamed', severity: 'P1' })
  const second = start()
  await store(-260)
  t.same(await untilNotices(world.notices, 1), ['d transition firing P2 rule'])
  world.notices.length = 0
  await store(100)
  t.same(
    (await untilNotices(world.notices, 4)).filter((one) => one.includes('resolved')),
    ['a', 'b', 'c', 'd'].map((id) => `${id} transition resolved P2 rule`),
  )
  await second.close()
  t.equal(new Set(world.log.map(({ alertId }) => alertId)).size, 1)
})

void test('the alert of a deleted source ends once, and nothing calls it silent again', async (t) => {
  const { world, store, start } = createWorld({ [-400]: 1 })
  world.group = ['shop']
  const kind = { type: 'absence', for: '2m' } as const
  await world.state.set('alerting:alive-since', String(T0 - 60 * MINUTE_MS), 2 * MINUTE_MS)
  world.rule = toRule({ ...notifying('a'), kind, group_by: ['source'] })
  const evaluator = start()
  await store(-390)
  await store(-200)
  t.same(world.transitions(), ['-270s inactive>firing 120'])
  world.hasSource = false
  await store(-190)
  await store(-100)
  await evaluator.close()
  t.match(
    world.log.slice(1).map(({ to, reason }) => [to, reason]),
    [['resolved', 'the source was deleted']],
  )
})

void test('when everything was deleted what fires ends, and nothing of before is missed', async (t) => {
  const arrivals: Record<number, number> = { [-400]: 1, [-210]: 1 }
  const { world, store, start } = createWorld(arrivals)
  world.group = ['web-1']
  const kind = { type: 'absence', for: '2m' } as const
  await world.state.set('alerting:alive-since', String(T0 - 60 * MINUTE_MS), 2 * MINUTE_MS)
  world.rule = toRule({ ...notifying('a'), kind, group_by: ['host'] })
  const evaluator = start()
  const clear = async (atS: number): Promise<void> => {
    for (const second of Object.keys(arrivals)) delete arrivals[Number(second)]
    evaluator.forgetAll()
    await store(atS)
  }
  await store(-390)
  await store(-220)
  t.same(world.transitions(), ['-270s inactive>firing 120'])
  await clear(-215)
  t.match(world.log.slice(1), [{ to: 'resolved', reason: 'everything was deleted' }])
  arrivals[-210] = 1
  await store(-200)
  await clear(-190)
  await store(0)
  await evaluator.close()
  t.equal(world.log.length, 2, 'what was there only before is not missed')
})

void test('a source of which everything is rejected was not deleted', async (t) => {
  const endedOf = (kind: string): number => {
    const ongoing = new Ongoing((name) => name === 'known')
    for (const source of ['known', 'shop', ''])
      ongoing.follow({
        ...TRANSITION,
        alertId: source,
        startedAtMs: 0,
        kind,
        groupBy: ['source'],
        group: [source],
      })
    return ongoing.ofDeletedSources.length
  }
  t.equal(endedOf('dead_letters'), 0)
  t.equal(endedOf('threshold'), 1)
})
