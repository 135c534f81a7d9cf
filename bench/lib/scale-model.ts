import { BATCH_BYTES, BATCH_DELAY_MS, BATCH_ROWS } from '../../src/writer/writer.js'

/** The costs of one event, one insert and one merge, measured by the benches. CPU times are in seconds. */
export interface UnitCosts {
  readonly serviceCpuPerMillion: number
  /** CPU of ClickHouse per event, with views and without merges. */
  readonly insertCpuPerMillion: number
  /** CPU of an insert, independent of its rows. */
  readonly insertCpu: number
  /** CPU of one merge of a million rows and of their rollups. */
  readonly mergeCpuPerMillion: number
  /** Bytes of an event on the wire, in the WAL and on disk. */
  readonly sentBytes: number
  readonly loggedBytes: number
  readonly storedBytes: number
}

export interface Machine {
  readonly cores: number
  readonly diskBytes: number
  readonly diskBytesPerS: number
  readonly networkBytesPerS: number
}

export interface Plan {
  readonly eventsPerS: number
  readonly collectors: number
  readonly shards: number
  /** Copies of each row, each on a machine of its own. */
  readonly replicas: number
  readonly machine: Machine
}

/** Utilisation of each resource, from 0 (idle) to 1 (saturated). */
export interface Shares {
  readonly 'collector CPU': number
  readonly 'collector network': number
  /** The share of time in which a collector sends a batch; it sends one at a time. */
  readonly 'collector batches': number
  readonly 'shard CPU': number
  readonly 'shard disk writes': number
}

export interface Estimate {
  readonly shares: Shares
  readonly bottleneck: keyof Shares
  /** Inserts per second and shard; every batch has rows of all shards. */
  readonly insertsPerShard: number
  readonly rowsPerPart: number
  /** How often a row is rewritten by merges. */
  readonly mergePasses: number
}

export interface Simulated {
  readonly shardCpu: number
  readonly collectorBatches: number
  /** Parts of `events` on the shard with the most, at half time and at the end. */
  readonly partsHalfway: number
  readonly parts: number
  /** Events in all WALs, at half time and at the end. */
  readonly backlogHalfway: number
  readonly backlog: number
  /** Stored events. */
  readonly stored: number
  readonly sent: number
}

const BATCH_DELAY_S = BATCH_DELAY_MS / 1000
/** Parts per merge; ClickHouse's choice varies with their age and sizes. */
const FAN_IN = 8
/** The default of `max_bytes_to_merge_at_max_space_in_pool`. */
const LARGEST_PART_BYTES = 150e9
/** The share of a machine that a plan may use; the rest is for bursts, queries and failed machines. */
const USABLE = 0.6
const STEP_S = 0.05

/** The use of resources by a plan in the long run, or after a number of seconds from an empty start. */
export function estimate(plan: Plan, costs: UnitCosts, seconds = Infinity): Estimate {
  const { eventsPerS, collectors, shards, machine } = plan
  const batchRows = batchRowsOf(plan, costs)
  const batchesPerS = eventsPerS / batchRows
  const rowsPerPart = batchRows / shards
  const rowsPerShard = eventsPerS / shards
  const largest = Math.min(LARGEST_PART_BYTES / costs.storedBytes, rowsPerShard * seconds)
  const mergePasses = Math.max(0, Math.log(largest / rowsPerPart) / Math.log(FAN_IN))
  const insertS = insertCpuOf(rowsPerPart, costs)
  const perRow = (costs.mergeCpuPerMillion / 1e6) * mergePasses
  const shares: Shares = {
    'collector CPU': ((eventsPerS / collectors) * costs.serviceCpuPerMillion) / 1e6 / machine.cores,
    'collector network':
      ((eventsPerS / collectors) * (costs.sentBytes + costs.loggedBytes)) /
      machine.networkBytesPerS,
    'collector batches': (batchesPerS / collectors) * insertS,
    'shard CPU': (batchesPerS * insertS + rowsPerShard * perRow) / machine.cores,
    'shard disk writes':
      (rowsPerShard * costs.storedBytes * (1 + mergePasses)) / machine.diskBytesPerS,
  }
  return {
    shares,
    bottleneck: highest(shares),
    insertsPerShard: batchesPerS,
    rowsPerPart,
    mergePasses,
  }
}

/** The fewest machines that sustain the rate and store the rows within the allowed share of each machine. */
export function planFor(
  wanted: Pick<Plan, 'eventsPerS' | 'replicas' | 'machine'> & { readonly rows: number },
  costs: UnitCosts,
): Plan {
  const { rows, ...rest } = wanted
  const stored = (rows * costs.storedBytes) / (wanted.machine.diskBytes * USABLE)
  let plan: Plan = { ...rest, collectors: 1, shards: Math.max(1, Math.ceil(stored)) }
  for (let tries = 0; tries < 10_000; tries++) {
    const { shares } = estimate(plan, costs)
    const name = highest(shares)
    if (shares[name] <= USABLE) return smallest(plan, stored, costs)
    plan = name.startsWith('collector')
      ? { ...plan, collectors: plan.collectors + 1 }
      : { ...plan, shards: plan.shards + 1 }
  }
  throw new Error('no number of machines is enough: the cost that does not divide is too high')
}

/** Removes machines that became unnecessary when the number of another kind grew. */
function smallest(found: Plan, stored: number, costs: UnitCosts): Plan {
  let plan = found
  const isEnough = (less: Plan): boolean => {
    const { shares } = estimate(less, costs)
    return (
      less.collectors > 0 && less.shards >= Math.max(1, stored) && shares[highest(shares)] <= USABLE
    )
  }
  for (const one of [
    { collectors: 1, shards: 0 },
    { collectors: 0, shards: 1 },
  ]) {
    for (;;) {
      const { collectors, shards } = plan
      const less = { ...plan, collectors: collectors - one.collectors, shards: shards - one.shards }
      if (!isEnough(less)) break
      plan = less
    }
  }
  return plan
}

interface Work {
  cpuS: number
  readonly done: () => void
}

/** One shard. Inserts and merges share its cores; each uses one core. */
class Shard {
  readonly #plan: Plan
  readonly #costs: UnitCosts
  #works: Work[] = []
  /** Parts by merge level, and the rows of all parts of a level. */
  readonly #levels: { parts: number; rows: number }[] = []
  #merges = 0
  usedS = 0

  constructor(plan: Plan, costs: UnitCosts) {
    this.#plan = plan
    this.#costs = costs
  }

  insert(rows: number, done: () => void): void {
    this.#works.push({
      cpuS: insertCpuOf(rows, this.#costs),
      done: () => {
        this.#addPart(0, rows)
        done()
      },
    })
  }

  get parts(): number {
    return this.#levels.reduce((sum, { parts }) => sum + parts, 0)
  }

  step(): void {
    const share = Math.min(1, this.#plan.machine.cores / Math.max(1, this.#works.length))
    const ended: Work[] = []
    for (const work of this.#works) {
      const spent = Math.min(work.cpuS, STEP_S * share)
      work.cpuS -= spent
      this.usedS += spent
      if (work.cpuS <= 1e-12) ended.push(work)
    }
    this.#works = this.#works.filter(({ cpuS }) => cpuS > 1e-12)
    for (const { done } of ended) done()
  }

  #addPart(no: number, rows: number): void {
    const level = (this.#levels[no] ??= { parts: 0, rows: 0 })
    level.parts++
    level.rows += rows
    this.#mergeSome()
  }

  #mergeSome(): void {
    for (const [no, level] of this.#levels.entries()) {
      const isPoolBusy = this.#merges >= Math.max(1, this.#plan.machine.cores / 2)
      if (isPoolBusy || level.parts < FAN_IN) continue
      const rows = (level.rows / level.parts) * FAN_IN
      if (rows * this.#costs.storedBytes > LARGEST_PART_BYTES) continue
      level.parts -= FAN_IN
      level.rows -= rows
      this.#merges++
      this.#works.push({
        cpuS: (rows * this.#costs.mergeCpuPerMillion) / 1e6,
        done: () => {
          this.#merges--
          this.#addPart(no + 1, rows)
        },
      })
    }
  }
}

/** Whether events or parts accumulate: inserts precede merges until ClickHouse refuses further parts. */
export const fallsBehind = (played: Simulated): boolean =>
  played.backlog > played.backlogHalfway * 1.5 || played.parts > played.partsHalfway * 1.5 + 10

/** Simulates a plan: collectors that fill WALs and send batches as the writer does, shards that insert and merge. */
export function simulate(
  plan: Plan,
  costs: UnitCosts,
  { seconds, random }: { readonly seconds: number; readonly random: () => number },
): Simulated {
  const shards = Array.from({ length: plan.shards }, () => new Shard(plan, costs))
  const wals = Array.from({ length: plan.collectors }, () => ({
    rows: 0,
    ageS: 0,
    busyS: 0,
    open: 0,
  }))
  const most = Math.min((2 * BATCH_BYTES) / costs.loggedBytes, BATCH_ROWS)
  const due = Math.min(BATCH_BYTES / costs.loggedBytes, BATCH_ROWS)
  const parts = (): number => Math.max(...shards.map((shard) => shard.parts))
  let [stored, sent, backlogHalfway, partsHalfway] = [0, 0, 0, 0]
  const send = (wal: (typeof wals)[number]): void => {
    const rows = Math.min(wal.rows, most)
    wal.open = shards.length
    wal.ageS = 0
    for (const shard of shards)
      shard.insert(rows / shards.length, () => {
        if (--wal.open > 0) return
        wal.rows -= rows
        stored += rows
      })
  }
  const steps = Math.round(seconds / STEP_S)
  for (let step = 0; step < steps; step++) {
    for (const wal of wals) {
      const came = (plan.eventsPerS / plan.collectors) * STEP_S * (0.5 + random())
      wal.rows += came
      sent += came
      if (wal.open > 0) wal.busyS += STEP_S
      else if ((wal.ageS += STEP_S) >= BATCH_DELAY_S || wal.rows >= due) send(wal)
    }
    for (const shard of shards) shard.step()
    if (step === steps >> 1) [backlogHalfway, partsHalfway] = [sent - stored, parts()]
  }
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length
  return {
    shardCpu: mean(shards.map(({ usedS }) => usedS / seconds / plan.machine.cores)),
    collectorBatches: mean(wals.map(({ busyS }) => busyS / seconds)),
    partsHalfway,
    parts: parts(),
    backlogHalfway,
    backlog: sent - stored,
    stored,
    sent,
  }
}

const insertCpuOf = (rows: number, costs: UnitCosts): number =>
  costs.insertCpu + (rows * costs.insertCpuPerMillion) / 1e6

/** A batch contains the events that arrive while the previous one is stored, or in half a second. */
function batchRowsOf({ eventsPerS, collectors }: Plan, costs: UnitCosts): number {
  const perCollector = eventsPerS / collectors
  const most = Math.min(BATCH_BYTES / costs.loggedBytes, BATCH_ROWS)
  return Math.max(1, Math.min(most, perCollector * BATCH_DELAY_S))
}

function highest(shares: Shares): keyof Shares {
  const names: (keyof Shares)[] = [
    'collector CPU',
    'collector network',
    'collector batches',
    'shard CPU',
    'shard disk writes',
  ]
  return names.reduce((top, name) => (shares[name] > shares[top] ? name : top))
}
