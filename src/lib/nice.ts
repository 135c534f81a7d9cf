import { getPriority, setPriority } from 'node:os'

/*
 * What is added to the nice value of worker threads and of the embedded engine. The event loop answers all requests and
 * needs little CPU time, and the few worker threads come before an acknowledgement; with lower nice values they run first
 * when the CPU is busy. The engine is in the session of the service: Linux gives each session an equal share of the CPU
 * (`kernel.sched_autogroup_enabled`), whatever the nice values of its processes.
 */
export const WORKER_NICE = 5
export const ENGINE_NICE = 10
const NICEST = 19

/** Raises the nice value of the calling thread and of threads that it starts later; on macOS of the whole process. */
export function beNice(increment: number): void {
  setPriority(Math.min(getPriority() + increment, NICEST))
}
