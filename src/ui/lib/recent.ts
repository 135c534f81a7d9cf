import { recent } from './settings.js'

const KEPT = 12

/** Recently run queries, newest first. */
export function recentLines(): readonly string[] {
  try {
    const read: unknown = JSON.parse(recent.value)
    return Array.isArray(read) ? read.filter((line) => typeof line === 'string') : []
  } catch {
    return []
  }
}

export function keep(line: string): void {
  if (line === '') return
  const lines = [line, ...recentLines().filter((other) => other !== line)]
  recent.value = JSON.stringify(lines.slice(0, KEPT))
}
