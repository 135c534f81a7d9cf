import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { seeded } from '../support/landing.js'
import { Asker } from './asker.js'
import { countAll, countByApi, type Query } from './count.js'
import {
  Installation,
  openTables,
  removeAll,
  tablesOf,
  type Env,
  type Owner,
} from './installation.js'
import { Ledger } from './ledger.js'
import { Load } from './load.js'
import type { Promptness } from './promptness.js'
import { untilWell } from './watch.js'
import { startUnrulyClickHouse, type UnrulyClickHouse } from '../support/unruly-clickhouse.js'

/** The environment of a fault: a service under load, its proxies and its disks. */
export interface Scene {
  readonly random: () => number
  readonly installation: Installation
  /** A second service on the same database, if the fault requires one. */
  readonly second: Installation | null
  readonly load: Load
  readonly ledger: Ledger
  /** Checks the duration of replies. */
  readonly promptness: Promptness
  /** A directory for the fault. */
  readonly dir: string
  readonly owner: Owner
  /** The proxy of an external ClickHouse; null with the embedded one. */
  readonly clickhouse: UnrulyClickHouse | null
  /** Writes a progress note. */
  note(text: string): void
  /** Records a problem: the trial fails. */
  problem(text: string): void
  /** Waits a random time between the two, multiplied by the command line's factor. */
  pause(fromMs: number, toMs: number): Promise<void>
}

export interface Fault {
  readonly id: string
  /** The row of the table in the guide to reliability. */
  readonly title: string
  /** The number of rounds of a short run. */
  readonly rounds: number
  /** ClickHouse is a child of the service, or a server behind a proxy. */
  readonly clickhouse: 'embedded' | 'server'
  /** Starts a second service on the same database and Redis. */
  readonly twoInstances?: boolean
  /** @returns the reason why it can't be tried here, or null */
  readonly missing?: () => Promise<string | null> | string | null
  /** Prepares the environment. @returns settings of the service */
  readonly prepare?: (setting: Setting) => Promise<Env> | Env
  /** Causes the fault, and repairs what does not recover by itself. */
  readonly strike: (scene: Scene, round: number) => Promise<void>
  /** Checked after the service has ended. */
  readonly after?: (scene: Scene) => Promise<void>
}

export interface Setting {
  readonly dir: string
  readonly dataDir: string
  readonly owner: Owner
  readonly random: () => number
}

export interface Result {
  readonly fault: Fault
  readonly seed: number
  readonly rounds: number
  readonly acknowledged: number
  readonly lost: number
  readonly doubled: number
  readonly problems: readonly string[]
  readonly skipped: string | null
  readonly seconds: number
}

export interface TrialOptions {
  readonly seed: number
  readonly rounds: number
  /** The factor of the durations of a short run. */
  readonly stretch: number
  readonly main?: string | undefined
  readonly note: (text: string) => void
  readonly promptness: Promptness
}

const SENDERS = 3
const PAUSE_MS = 25
const TAKEN_MS = 90_000

/** Causes a fault repeatedly under load, then counts. Never rejects. */
export async function tryFault(fault: Fault, options: TrialOptions): Promise<Result> {
  const startedMs = performance.now()
  const problems: string[] = []
  const ends: (() => Promise<unknown> | void)[] = []
  const owner: Owner = { teardown: (end) => void ends.push(end) }
  const done = (counted: Partial<Result>): Result => ({
    fault,
    seed: options.seed,
    rounds: options.rounds,
    acknowledged: 0,
    lost: 0,
    doubled: 0,
    problems,
    skipped: null,
    seconds: Math.round((performance.now() - startedMs) / 1000),
    ...counted,
  })
  const missing = (await fault.missing?.()) ?? null
  if (missing !== null) return done({ skipped: missing, rounds: 0 })
  try {
    return done(await strikeAndCount(fault, options, { owner, problems }))
  } catch (error) {
    problems.push(error instanceof Error ? error.message.slice(0, 2000) : String(error))
    return done({})
  } finally {
    for (const end of ends.toReversed()) await end()
  }
}

interface Keeping {
  readonly owner: Owner
  readonly problems: string[]
}

async function strikeAndCount(
  fault: Fault,
  options: TrialOptions,
  { owner, problems }: Keeping,
): Promise<Partial<Result>> {
  const dir = mkdtempSync(join(tmpdir(), `fault-${fault.id}-`))
  owner.teardown(() => removeAll(dir))
  const random = seeded(options.seed)
  const dataDir = join(dir, 'data')
  const clickhouse =
    fault.clickhouse === 'server' ? await startUnrulyClickHouse(owner, random) : null
  const prepared = await fault.prepare?.({ dir, dataDir, owner, random })
  const env = { ...clickhouse?.env, ...prepared }
  const installation = new Installation(owner, { dataDir, env, main: options.main })
  await installation.start()
  const second = fault.twoInstances
    ? new Installation(owner, { dataDir: join(dir, 'second'), env, main: options.main })
    : null
  await second?.start()
  const all = second === null ? [installation] : [installation, second]
  const ledger = new Ledger(options.seed, Date.now())
  const load = new Load({
    ledger,
    random,
    promptness: options.promptness,
    collectors: () => all.map(({ collector }) => collector),
    senders: SENDERS,
    pauseMs: PAUSE_MS,
  })
  owner.teardown(() => load.stop())
  const askers = all.map((each) => new Asker(() => each.api, options.promptness))
  owner.teardown(() => Promise.all(askers.map((asker) => asker.stop())))
  const scene: Scene = {
    random,
    installation,
    second,
    load,
    ledger,
    promptness: options.promptness,
    dir,
    owner,
    clickhouse,
    note: options.note,
    problem: (text) => void problems.push(text),
    pause: (fromMs, toMs) => sleep((fromMs + random() * (toMs - fromMs)) * options.stretch),
  }
  // What was acknowledged before the first fault is what may be lost.
  if (!(await load.untilTaken(TAKEN_MS))) throw new Error('takes nothing before the first round')
  for (let round = 0; round < options.rounds; round++) {
    await sleep(150 + random() * 800)
    await fault.strike(scene, round)
    // The service must recover by itself, report it, and accept messages.
    for (const each of all) await untilWell(each)
    if (!(await load.untilTaken(TAKEN_MS)))
      throw new Error(`round ${round}: takes nothing any more`)
  }
  await load.stop()
  await Promise.all(askers.map((asker) => asker.stop()))
  for (const sender of [load, ...askers]) problems.push(...sender.problems.slice(0, 10))
  for (const each of all) await each.settle()
  await compareApi(scene)
  for (const each of all) {
    const { code, signal } = await each.stop()
    if (code !== 0) problems.push(`ended with ${code ?? signal}`)
  }
  await fault.after?.(scene)
  options.note(summaryOf(scene))
  options.note(options.promptness.summary())
  const { acknowledged, lost, doubled, ...found } = await countTables(scene)
  problems.push(...found.problems)
  return { acknowledged, lost, doubled }
}

const summaryOf = ({ ledger, load }: Scene): string =>
  `${ledger.size} bodies: ${ledger.count('acknowledged')} acknowledged, ${ledger.count('refused')} refused, ` +
  `${ledger.count('unknown')} unknown (${[...load.statuses].map(([status, n]) => `${status} × ${n}`).join(', ')})`

async function compareApi({ installation, problem }: Scene): Promise<void> {
  const { get } = await installation.logIn()
  const counted = await countByApi(get)
  if (new Set(Object.values(counted)).size !== 1)
    problem(`the API contradicts itself: ${JSON.stringify(counted)}`)
}

async function countTables({ installation, clickhouse, ledger }: Scene) {
  const tables: { readonly query: Query; readonly close: () => Promise<void> } =
    clickhouse === null
      ? await openTables(installation.dataDir)
      : tablesOf(clickhouse.server.engine)
  try {
    return await countAll(tables.query, ledger)
  } finally {
    await tables.close()
  }
}
