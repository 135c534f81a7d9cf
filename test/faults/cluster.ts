import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { startCluster, type Backend, type TestCluster } from '../support/cluster.js'
import { seeded } from '../support/landing.js'
import { startRedis, type RedisServer } from '../support/redis.js'
import { logIn } from '../support/service.js'
import { signal } from '../support/signals.js'
import { startUnrulyClickHouse, type UnrulyClickHouse } from '../support/unruly-clickhouse.js'
import { countAll, countByApi } from './count.js'
import { Installation, removeAll, tablesOf, type Owner } from './installation.js'
import { Ledger } from './ledger.js'
import { Load } from './load.js'
import type { Promptness } from './promptness.js'
import { untilWell } from './watch.js'

/** Two instances, each with its way to a ClickHouse of two shards, and one Redis. */
interface Scene {
  readonly random: () => number
  readonly instances: readonly Installation[]
  readonly ways: readonly UnrulyClickHouse[]
  readonly cluster: TestCluster
  readonly redis: RedisServer
}

type Strike = (scene: Scene) => Promise<void>

const oneOf = <T>(random: () => number, values: readonly T[]): T =>
  values[Math.floor(random() * values.length)] as T // one of its indexes

const among = (random: () => number, fromMs: number, toMs: number): Promise<void> =>
  sleep(fromMs + random() * (toMs - fromMs))

const killInstance: Strike = async ({ random, instances }) => {
  const one = oneOf(random, instances)
  await one.kill()
  await among(random, 0, 2_000)
  await one.start()
}

const killShard: Strike = async ({ random, cluster }) => {
  const shard = oneOf(random, cluster.shards)
  const pid = shard.pid()
  shard.kill()
  while (shard.pid() === pid || shard.pid() === null) await sleep(20)
}

const killRedis: Strike = async ({ random, redis }) => {
  await redis.kill()
  await among(random, 300, 2_000)
  await redis.start()
}

const told = async (redis: RedisServer, ...command: readonly string[]): Promise<void> => {
  const client = new Redis(redis.url)
  const [name = '', ...rest] = command
  await client.call(name, ...rest)
  client.disconnect()
}

/** Has the way of one instance to ClickHouse disturb some inserts. */
const harmed =
  (mood: UnrulyClickHouse['mood']): Strike =>
  async ({ random, ways }) => {
    const way = oneOf(random, ways)
    const before = way.harmed
    way.mood = mood
    for (let i = 0; i < 200 && way.harmed - before < 2; i++) await sleep(20)
    way.mood = 'well'
  }

const cutOff =
  (mood: UnrulyClickHouse['mood']): Strike =>
  async ({ random, ways }) => {
    const way = oneOf(random, ways)
    way.mood = mood
    await among(random, 500, 3_000)
    way.mood = 'well'
  }

/** The instance is killed when ClickHouse has its batch, and before it knows. */
const killUnknowing: Strike = async ({ random, instances, ways }) => {
  const at = Math.floor(random() * instances.length)
  const [one, way] = [instances[at], ways[at]]
  if (one === undefined || way === undefined) throw new Error('bug: an instance without a way')
  way.mood = 'reply delayed'
  for (let i = 0; i < 200 && way.holding === 0; i++) await sleep(20)
  await one.kill()
  way.mood = 'well'
  await among(random, 0, 2_000)
  await one.start()
}

const STRIKES: Readonly<Record<string, Strike>> = {
  'kill -9 of an instance': killInstance,
  'SIGTERM of an instance': async ({ random, instances }) => {
    const one = oneOf(random, instances)
    await one.stop()
    await one.start()
  },
  'an instance stands still': async ({ random, instances }) => {
    const { pid } = oneOf(random, instances).service
    signal(pid, 'SIGSTOP')
    await among(random, 500, 4_000)
    signal(pid, 'SIGCONT')
  },
  'kill -9 of a shard': killShard,
  'kill -9 of both shards': async (scene) => {
    const { shards } = scene.cluster
    await Promise.all(
      shards.map((shard) =>
        killShard({ ...scene, cluster: { ...scene.cluster, shards: [shard] } }),
      ),
    )
  },
  'a shard stands still': async ({ random, cluster }) => {
    const pid = oneOf(random, cluster.shards).pid()
    if (pid === null) return
    signal(pid, 'SIGSTOP')
    await among(random, 500, 4_000)
    signal(pid, 'SIGCONT')
  },
  'a shard is away': async ({ random, cluster }) => {
    const shard = oneOf(random, cluster.shards)
    await shard.down()
    await among(random, 500, 4_000)
    await shard.up()
  },
  'Redis is killed, and back empty': killRedis,
  'Redis is emptied': ({ redis }) => told(redis, 'FLUSHALL'),
  'Redis has no memory': async ({ random, redis }) => {
    await told(redis, 'CONFIG', 'SET', 'maxmemory', '1')
    await among(random, 500, 2_000)
    await told(redis, 'CONFIG', 'SET', 'maxmemory', '0')
  },
  'Redis stands still': async ({ random, redis }) => {
    redis.pause()
    await among(random, 500, 3_000)
    redis.resume()
  },
  'replies to inserts are lost': harmed('reply lost'),
  'inserts happen late': harmed('late'),
  'inserts are cut': harmed('half sent'),
  'ClickHouse has no memory for inserts': harmed('starved'),
  'an instance is cut off from ClickHouse': cutOff('gone'),
  'ClickHouse does not answer an instance': cutOff('silent'),
  'ClickHouse is slow for an instance': cutOff('slow'),
  'kill -9 between an insert and its reply': killUnknowing,
  'an instance, a shard and Redis are killed at once': async (scene) => {
    await Promise.all([killInstance(scene), killShard(scene), killRedis(scene)])
  },
}

export interface ClusterTrial {
  readonly rounds: number
  readonly acknowledged: number
  readonly lost: number
  readonly doubled: number
  readonly problems: readonly string[]
}

export interface ClusterTrialOptions {
  readonly seed: number
  /** No round begins after so many seconds. */
  readonly budgetS: number
  /** Words of the names of faults; none for all. */
  readonly only: readonly string[]
  readonly promptness: Promptness
  readonly note: (text: string) => void
}

const SENDERS = 4
const PAUSE_MS = 60
const SETTLE_MS = 120_000
const ATTEMPTS = 3

/**
 * Faults in random order on two instances, two shards and Redis, under load to both instances. After each fault everything
 * must be well again by itself, and every table and both APIs must agree with what was acknowledged.
 */
export async function tryCluster(options: ClusterTrialOptions): Promise<ClusterTrial> {
  const ends: (() => Promise<unknown> | void)[] = []
  const owner: Owner = { teardown: (end) => void ends.push(end) }
  try {
    return await strikeOften(options, owner)
  } finally {
    for (const end of ends.toReversed()) await end()
  }
}

async function open(seed: number, owner: Owner): Promise<Scene> {
  const random = seeded(seed)
  const dir = mkdtempSync(join(tmpdir(), 'cluster-faults-'))
  owner.teardown(() => removeAll(dir))
  const redis = await startRedis()
  if (redis === null) throw new Error('redis-server is not installed')
  owner.teardown(() => redis.kill())
  const cluster = await startCluster(2)
  owner.teardown(() => cluster.stop())
  const backend = backendOf(cluster)
  const ways = [
    await startUnrulyClickHouse(owner, random, backend),
    await startUnrulyClickHouse(owner, random, backend),
  ]
  const instances = ways.map((way, i) => {
    const env = {
      ...cluster.env,
      ...way.env,
      REDIS_URL: redis.url,
      LOGIN_LIMIT: '10000/60',
      JWT_SECRET: 'the same for all instances of the fault suite',
    }
    return new Installation(owner, { dataDir: join(dir, `instance-${i}`), env })
  })
  for (const one of instances) await one.start()
  return { random, instances, ways, cluster, redis }
}

function backendOf({ shards, env }: TestCluster): Backend {
  const { CLICKHOUSE_USER: username = '', CLICKHOUSE_PASSWORD: password = '' } = env
  const engine = { url: shards[0]?.url ?? '', username, password }
  return { engine, env, shards, stop: async () => undefined }
}

async function strikeOften(
  { seed, budgetS, only, promptness, note }: ClusterTrialOptions,
  owner: Owner,
): Promise<ClusterTrial> {
  const strikes = Object.keys(STRIKES).filter(
    (name) => only.length === 0 || only.some((words) => name.includes(words)),
  )
  if (strikes.length === 0) throw new Error(`no fault on a cluster is named ${only.join(', ')}`)
  const untilMs = performance.now() + budgetS * 1000
  const scene = await open(seed, owner)
  const { random, instances } = scene
  const ledger = new Ledger(seed, Date.now())
  const load = new Load({
    ledger,
    random,
    promptness,
    collectors: () => instances.map(({ collector }) => collector),
    senders: SENDERS,
    pauseMs: PAUSE_MS,
  })
  owner.teardown(() => load.stop())
  let found = { acknowledged: 0, lost: 0, doubled: 0, problems: [] as readonly string[] }
  let [rounds, names] = [0, [] as string[]]
  while (performance.now() < untilMs && found.problems.length === 0) {
    // Every fault comes once before one comes again.
    if (names.length === 0) names = shuffled(strikes, random)
    const name = names.pop() ?? ''
    await among(random, 200, 1_200)
    const failed = (cause: unknown): never => {
      throw new Error(`round ${rounds + 1}, ${name}`, { cause })
    }
    await STRIKES[name]?.(scene).catch(failed)
    for (const one of instances) await untilWell(one).catch(failed)
    if (!(await load.untilTaken(SETTLE_MS))) throw new Error(`${name}: takes nothing any more`)
    load.pause(true)
    await load.untilSettled()
    for (const one of instances) await one.settle(SETTLE_MS)
    found = await compare(scene, ledger)
    load.pause(false)
    rounds++
    note(
      `${rounds} ${name}: ${found.acknowledged} acknowledged, ${found.lost} lost, ${found.doubled} doubled`,
    )
    for (const problem of found.problems) note(`    ${problem}`)
  }
  await load.stop()
  for (const one of instances) await one.settle(SETTLE_MS)
  const differences = await compareList(scene, ledger)
  return {
    rounds,
    ...found,
    problems: [...found.problems, ...differences, ...load.problems.slice(0, 10)],
  }
}

function shuffled(names: readonly string[], random: () => number): string[] {
  return names
    .map((name) => ({ name, at: random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ name }) => name)
}

/** No fault lasts when answers are compared, so a refusal is a fault of the service; only what a busy machine makes late is asked again. */
async function inTime<T>(ask: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask()
    } catch (error) {
      if (attempt === ATTEMPTS || !isLate(error)) throw error
      await sleep(1000)
    }
  }
}

/** Whether a deadline has passed, the service's for an answer or one of its servers', which its refusal tells. */
const isLate = (error: unknown): boolean =>
  error instanceof Error && /"timeout_ms"|does not answer/.test(error.message)

async function compare({ cluster, instances }: Scene, ledger: Ledger) {
  const tables = tablesOf(backendOf(cluster).engine)
  try {
    const { problems, ...counted } = await countAll(tables.query, ledger)
    const answers = await Promise.all(
      instances.map(({ service }) => inTime(async () => countByApi((await logIn(service)).get))),
    )
    const numbers = new Set(answers.flatMap((answer) => Object.values(answer)))
    const isOne = numbers.size === 1
    return {
      ...counted,
      problems: isOne ? problems : [...problems, `the APIs differ: ${JSON.stringify(answers)}`],
    }
  } finally {
    await tables.close()
  }
}

interface ListPage {
  readonly items: readonly { readonly occurrence_count: number }[]
  readonly next_cursor: string | null
}

/** The list from a moment on has as many occurrences as the seconds have, though events before it have repeats after it. */
async function compareList({ cluster, instances }: Scene, ledger: Ledger): Promise<string[]> {
  const fromS = ledger.secondOf(Math.floor(ledger.size / 2))
  const toS = ledger.secondOf(ledger.size) + 1
  const [first] = instances
  const caller = first && (await inTime(() => logIn(first.service)))
  if (caller === undefined) throw new Error('bug: no instance')
  const span = `start_time=${new Date(fromS * 1000).toISOString()}&end_time=${new Date(toS * 1000).toISOString()}`
  let listed = 0
  for (let cursor = ''; ;) {
    const page = await caller.get<ListPage>(`/api/logs?limit=200&${span}${cursor}`)
    for (const { occurrence_count: n } of page.items) listed += n
    if (page.next_cursor === null) break
    cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`
  }
  const { total } = await caller.get<{ readonly total: number }>(`/api/logs/histogram?${span}`)
  const tables = tablesOf(backendOf(cluster).engine)
  try {
    const [row] = await tables.query(
      `SELECT toInt64(sum(p1 + p2 + p3 + p4)) AS n FROM series_1s WHERE t >= fromUnixTimestamp(${fromS})`,
    )
    const counted = Number(row?.['n'])
    return listed === counted && total === counted
      ? []
      : [
          `from ${fromS} on the list has ${listed}, the histogram ${total}, and the seconds ${counted}`,
        ]
  } finally {
    await tables.close()
  }
}
