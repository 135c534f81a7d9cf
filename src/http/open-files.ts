/** Files and sockets that the process may have open at one time; null when the system does not say. */
export function openFileLimit(): number | null {
  // without this the report looks up the names of all network interfaces
  Object.assign(process.report, { excludeNetwork: true })
  const report: unknown = process.report.getReport()
  const soft: unknown = Object(Object(Object(report).userLimits).open_files).soft
  return typeof soft === 'number' ? soft : null
}
