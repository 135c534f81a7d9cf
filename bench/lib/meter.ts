import { setTimeout as sleep } from 'node:timers/promises'
import { readThreads, readUsage, type Usage } from './processes.js'
import type { Service } from './service.js'

/** CPU seconds and memory of the service and its ClickHouse. */
export interface Reading {
  readonly service: Usage
  /** CPU seconds of each running thread of the service; the main thread's id is the process's. */
  readonly threads: ReadonlyMap<number, number>
  readonly mainThreadId: number
  readonly engine: Usage
}

/** CPU seconds of the threads of the service between two readings: the main thread, then the others, busiest first. */
export function threadSeconds(before: Reading, after: Reading): { main: number; others: number[] } {
  const spent = (id: number): number => (after.threads.get(id) ?? 0) - (before.threads.get(id) ?? 0)
  const others = [...after.threads.keys()].filter((id) => id !== after.mainThreadId).map(spent)
  return { main: spent(after.mainThreadId), others: others.sort((a, b) => b - a) }
}

const NOTHING: Usage = { cpuS: 0, peakRssBytes: 0, anonBytes: 0 }
const SETTLE_STEP_MS = 500
/** Consecutive idle steps after which merges count as ended. */
const QUIET_STEPS = 4
/** The share of a core, beyond the idle share, up to which a step counts as idle. */
const QUIET_SHARE = 0.03
const SETTLE_MAX_MS = 120_000

/** Reads a service that runs on this machine. */
export class Meter {
  readonly #service: Service
  #idleShare = 0

  private constructor(service: Service) {
    this.#service = service
  }

  /** Measures the CPU time of the idle engine for two seconds. */
  static async open(service: Service): Promise<Meter> {
    const meter = new Meter(service)
    await meter.settle()
    const before = meter.read().engine.cpuS
    await sleep(2000)
    meter.#idleShare = (meter.read().engine.cpuS - before) / 2
    return meter
  }

  /** CPU share of one core that the idle engine takes. */
  get idleShare(): number {
    return this.#idleShare
  }

  read(): Reading {
    const { pid } = this.#service
    const enginePid = this.#service.enginePid()
    return {
      service: readUsage(pid) ?? NOTHING,
      threads: readThreads(pid),
      mainThreadId: pid,
      engine: enginePid === null ? NOTHING : (readUsage(enginePid) ?? NOTHING),
    }
  }

  /** Waits until the engine has nothing left to merge. @returns the time in ms, without the idle steps at the end */
  async settle(): Promise<number> {
    const startedAtMs = performance.now()
    let last = this.read().engine.cpuS
    let quiet = 0
    while (quiet < QUIET_STEPS && performance.now() - startedAtMs < SETTLE_MAX_MS) {
      await sleep(SETTLE_STEP_MS)
      const cpuS = this.read().engine.cpuS
      const share = (cpuS - last) / (SETTLE_STEP_MS / 1000)
      quiet = share <= this.#idleShare + QUIET_SHARE ? quiet + 1 : 0
      last = cpuS
    }
    return performance.now() - startedAtMs - quiet * SETTLE_STEP_MS
  }
}
