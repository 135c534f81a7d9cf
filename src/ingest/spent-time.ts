import { openSync, readSync } from 'node:fs'

/** Shorter times are not corrected: the kernel counts in steps of up to 10 ms, and reading its counter takes some µs. */
const PRECISE_MS = 5
const STEP_MS = 10
const SPACE = 0x20

/** The CPU time of this thread in ms, as the kernel counts it; null where it does not (Linux does). */
function createThreadClock(): () => number | null {
  const text = Buffer.alloc(64)
  try {
    const file = openSync('/proc/thread-self/schedstat', 'r')
    return () => {
      const length = readSync(file, text, 0, text.length, 0)
      const end = text.subarray(0, length).indexOf(SPACE)
      return end < 1 ? null : Number(text.toString('latin1', 0, end)) / 1e6
    }
  } catch {
    return () => null
  }
}

const cpuMs = createThreadClock()

/**
 * Measures the time that a thread spends on successive things, without the time in which it waited
 * for a core. Otherwise, on a busy machine, a small body would seem to take long and would have to
 * wait behind those that do.
 */
export class SpentTime {
  #atMs = performance.now()
  #cpuMs = cpuMs()

  /** @returns ms since the last lap */
  lap(): number {
    const nowMs = performance.now()
    const passedMs = nowMs - this.#atMs
    this.#atMs = nowMs
    if (passedMs < PRECISE_MS || this.#cpuMs === null) return passedMs
    const before = this.#cpuMs
    this.#cpuMs = cpuMs()
    return Math.min(passedMs, (this.#cpuMs ?? Infinity) - before + STEP_MS)
  }
}
