import * as fc from 'fast-check'
import t from 'tap'
import { Random } from '../../../bench/data/random.js'
import {
  estimate,
  fallsBehind,
  planFor,
  simulate,
  type Machine,
  type Plan,
  type UnitCosts,
} from '../../../bench/lib/scale-model.js'

const machine: Machine = {
  cores: 8,
  diskBytes: 4e12,
  diskBytesPerS: 5e8,
  networkBytesPerS: 1.25e9,
}

const costs: UnitCosts = {
  serviceCpuPerMillion: 4,
  insertCpuPerMillion: 2,
  insertCpu: 0.02,
  mergeCpuPerMillion: 1,
  sentBytes: 243,
  loggedBytes: 180,
  storedBytes: 38,
}

const play = (seed: number) => {
  const random = new Random(seed)
  return { seconds: 60, random: () => random.share() }
}

t.test('a plan is enough, and one machine less is not', async (t) => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1000, max: 3_000_000 }),
      fc.integer({ min: 1, max: 1_000_000 }),
      (eventsPerS, millions) => {
        const rows = millions * 1e6
        const plan = planFor({ eventsPerS, replicas: 1, machine, rows }, costs)
        const use = (changed: Partial<Plan>): number =>
          Math.max(...Object.values(estimate({ ...plan, ...changed }, costs).shares))
        t.ok(use({}) <= 0.6)
        const stored = (shards: number): number =>
          (rows * costs.storedBytes) / shards / machine.diskBytes
        const fewer = plan.shards - 1
        t.ok(fewer === 0 || stored(fewer) > 0.6 || use({ shards: fewer }) > 0.6)
        const collectors = plan.collectors - 1
        t.ok(collectors === 0 || use({ collectors }) > 0.6)
      },
    ),
    { numRuns: 60 },
  )
})

t.test('what is sent is stored or waits, and nothing else happens to it', async (t) => {
  for (const eventsPerS of [500, 50_000, 5_000_000]) {
    const plan: Plan = { eventsPerS, collectors: 2, shards: 3, replicas: 1, machine }
    const { sent, stored, backlog } = simulate(plan, costs, play(eventsPerS))
    t.ok(Math.abs(sent - stored - backlog) < 1)
    t.ok(Math.abs(sent / (eventsPerS * 60) - 1) < 0.02)
  }
})

t.test('shards keep up below their limit and fall behind above it', async (t) => {
  const plan: Plan = { eventsPerS: 400_000, collectors: 6, shards: 2, replicas: 1, machine }
  const { shares } = estimate(plan, costs, 60)
  const calm = simulate(plan, costs, play(1))
  t.ok(calm.backlog < plan.eventsPerS * 3)
  t.ok(Math.abs(calm.shardCpu - shares['shard CPU']) < 0.35 * shares['shard CPU'])
  const over = { ...plan, eventsPerS: (plan.eventsPerS / shares['shard CPU']) * 3 }
  const busy = simulate(over, costs, play(1))
  t.notOk(fallsBehind(calm))
  t.ok(fallsBehind(busy))
  t.ok(busy.shardCpu > calm.shardCpu)
})
