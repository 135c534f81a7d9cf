import { writeFileSync } from 'node:fs'
import { readUsage } from './processes.js'
import type { Metric } from './report.js'
import type { Service } from './service.js'

const MIB = 1024 * 1024

/**
 * What every process of a scenario takes from now on: the service and its ClickHouse when they are seen, and this
 * process, which asks, sends or does the work itself.
 *
 * @returns CPU seconds since, and the most memory of each; call it while they live
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

/** Else the peak would be that of an earlier scenario. */
function forgetOwnPeak(): void {
  try {
    writeFileSync('/proc/self/clear_refs', '5')
  } catch {
    // no Linux, or not allowed: the peak is that of all scenarios up to now
  }
}
