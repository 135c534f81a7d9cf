import { writeFileSync } from 'node:fs'
import { readUsage } from './processes.js'
import type { Metric } from './report.js'
import type { Service } from './service.js'

const MIB = 1024 * 1024

/**
 * Measures the processes of a scenario from now on: the service and its ClickHouse where they run on this machine, and
 * this process.
 *
 * @returns a function that reads the CPU seconds and the peak memory of each; to be called while they run
 */
export function watchProcesses(service: Service | null): () => Metric[] {
  forgetOwnPeak()
  const watched = [
    { name: 'the bench itself', pid: process.pid },
    ...(service === null ? [] : [{ name: 'the service', pid: service.pid }]),
    ...toList(service?.enginePid()).map((pid) => ({ name: 'ClickHouse', pid })),
  ].map((one) => ({ ...one, cpuS: readUsage(one.pid)?.cpuS ?? 0 }))
  return () =>
    watched.flatMap(({ name, pid, cpuS }) => {
      const usage = readUsage(pid)
      return usage === null
        ? []
        : [
            metric(`whole run: CPU of ${name}`, 'CPU s', usage.cpuS - cpuS),
            metric(`whole run: peak RSS of ${name}`, 'MiB', usage.peakRssBytes / MIB),
          ]
    })
}

const metric = (name: string, unit: string, value: number): Metric => ({
  name,
  unit,
  samples: [value],
  better: 'info',
})

const toList = (pid: number | null | undefined): readonly number[] =>
  pid === null || pid === undefined ? [] : [pid]

/** Resets the peak memory, which would otherwise be that of an earlier scenario. */
function forgetOwnPeak(): void {
  try {
    writeFileSync('/proc/self/clear_refs', '5')
  } catch {
    // Without Linux or without the permission the peak includes earlier scenarios.
  }
}
