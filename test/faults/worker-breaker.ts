import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { signal } from '../support/signals.js'
import type { Env } from './installation.js'
import type { Scene, Setting } from './trial.js'

/** How a thread ends, and which one; `worker-breaker-preload.ts` does it. */
export const THREADS = ['encoder', 'owner'] as const
export const WAYS = ['terminate', 'exit', 'throw'] as const

export interface BreakOrder {
  readonly thread: (typeof THREADS)[number]
  readonly way: (typeof WAYS)[number]
}

const ORDER_FILE = 'break-worker.json'

/** The settings of a service whose threads can be broken by the preloaded module. */
export function withWorkersExposed({ dir }: Setting): Env {
  const preload = new URL('worker-breaker-preload.js', import.meta.url).href
  return { NODE_OPTIONS: `--import=${preload}`, BREAK_WORKER_FILE: join(dir, ORDER_FILE) }
}

export function breakWorker({ installation, dir, random, note }: Scene): Promise<void> {
  const pick = <T>(values: readonly [T, ...T[]]): T =>
    values[Math.floor(random() * values.length)] ?? values[0]
  const order: BreakOrder = { thread: pick(THREADS), way: pick(WAYS) }
  note(`${order.way} ${order.thread}`)
  writeFileSync(join(dir, ORDER_FILE), JSON.stringify(order))
  signal(installation.service.pid, 'SIGUSR2')
  return Promise.resolve()
}
