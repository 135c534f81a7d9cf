import { getPriority, setPriority } from 'node:os'

/**
 * Added to the nice value of worker threads and of the embedded engine. The event loop answers all requests and needs little CPU
 * time; with the lower nice value it runs first when the CPU is busy.
 */
export const NICE_INCREMENT = 5
const NICEST = 19

/**
 * Raises the nice value of the calling thread and of threads that it starts later; on macOS of the
 * whole process.
 */
export function beNice(): void {
  setPriority(Math.min(getPriority() + NICE_INCREMENT, NICEST))
}
