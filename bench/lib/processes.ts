import { readdirSync, readFileSync } from 'node:fs'

/** Figures of a process from /proc; Linux only. */
export interface Usage {
  /** User and system time of all threads, in seconds. */
  readonly cpuS: number
  /** Peak resident memory. */
  readonly peakRssBytes: number
  /** Anonymous resident memory, without mapped files such as the engine's library. */
  readonly anonBytes: number
}

/** The value of `getconf CLK_TCK`, which is 100 on every Linux that Node runs on. */
const TICKS_PER_S = 100

/** @returns null when there is no such process, or no /proc */
export function readUsage(pid: number): Usage | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    return {
      cpuS: cpuOf(stat),
      peakRssBytes: kibOf(status, 'VmHWM') * 1024,
      anonBytes: kibOf(status, 'RssAnon') * 1024,
    }
  } catch {
    return null
  }
}

/** CPU seconds of each thread of a process, by thread id; the main thread's is the process id. */
export function readThreads(pid: number): Map<number, number> {
  const threads = new Map<number, number>()
  for (const tid of listOrNone(`/proc/${pid}/task`)) {
    try {
      threads.set(Number(tid), cpuOf(readFileSync(`/proc/${pid}/task/${tid}/stat`, 'latin1')))
    } catch {
      // The process has ended.
    }
  }
  return threads
}

/** Direct children of a process. */
export function childrenOf(pid: number): number[] {
  return listOrNone('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((child) => parentOf(child) === pid)
}

function parentOf(pid: number): number {
  try {
    return Number(afterName(readFileSync(`/proc/${pid}/stat`, 'latin1'))[1])
  } catch {
    return -1
  }
}

/** The fields from the third on: the second, the name, may hold blanks and brackets. */
const afterName = (stat: string): string[] => stat.slice(stat.lastIndexOf(')') + 2).split(' ')

function cpuOf(stat: string): number {
  const fields = afterName(stat)
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_S
}

const kibOf = (status: string, name: string): number =>
  Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0)

function listOrNone(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}
