/** The limit of open files and sockets of the process; null when the system reports none. */
export function openFileLimit(): number | null {
  // Otherwise the report resolves the names of all network interfaces.
  Object.assign(process.report, { excludeNetwork: true })
  const report: unknown = process.report.getReport()
  const soft: unknown = Object(Object(Object(report).userLimits).open_files).soft
  return typeof soft === 'number' ? soft : null
}
