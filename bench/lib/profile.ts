import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { field, listField, numberField, textField } from './api.js'

const SHOWN = 25

/** The CPU profiles of a folder, which is made when it is missing, and of the folders in it. */
export function profilesIn(folder: string): readonly string[] {
  mkdirSync(folder, { recursive: true })
  const all = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const names = all.filter((file) => file.endsWith('.cpuprofile'))
  return names.sort()
}

/** Prints the functions with the most self time of each CPU profile in a folder that was not there earlier. */
export function printProfiles(folder: string, earlier: readonly string[]): void {
  for (const name of profilesIn(folder).filter((file) => !earlier.includes(file))) {
    const { totalMs, functions } = readProfile(join(folder, name))
    process.stdout.write(
      `\n${name} (${threadOf(name)}): ${Math.round(totalMs)} ms sampled without idle time\n`,
    )
    for (const [where, ms] of functions.slice(0, SHOWN)) {
      const percent = ((ms / totalMs) * 100).toFixed(1).padStart(5)
      process.stdout.write(`  ${percent} %  ${ms.toFixed(0).padStart(6)} ms  ${where}\n`)
    }
  }
}

/** Node names the files CPU.DATE.TIME.PROCESS.THREAD.NUMBER. */
const threadOf = (name: string): string =>
  /\.\d+\.0\.\d+\.cpuprofile$/.test(name) ? 'main thread' : 'a worker'

interface Profile {
  readonly totalMs: number
  /** Source position and self time in ms, in descending order. */
  readonly functions: readonly (readonly [string, number])[]
}

/** @throws Error when the file is no CPU profile */
export function readProfile(path: string): Profile {
  const profile: unknown = JSON.parse(readFileSync(path, 'utf8'))
  const places = new Map<number, string>()
  for (const node of listField(profile, 'nodes')) places.set(numberField(node, 'id'), placeOf(node))
  const samples = listField(profile, 'samples')
  const deltas = listField(profile, 'timeDeltas')
  const selfMs = new Map<string, number>()
  samples.forEach((id, i) => {
    const place = places.get(Number(id)) ?? '?'
    selfMs.set(place, (selfMs.get(place) ?? 0) + Number(deltas[i] ?? 0) / 1000)
  })
  selfMs.delete('(idle)')
  selfMs.delete('(root)')
  // An idle worker thread of the pool sleeps in this function.
  for (const place of selfMs.keys()) if (place.startsWith('atomicsWaitLoop ')) selfMs.delete(place)
  const functions = [...selfMs].sort((a, b) => b[1] - a[1])
  return { totalMs: functions.reduce((sum, [, ms]) => sum + ms, 0), functions }
}

function placeOf(node: unknown): string {
  const frame = field(node, 'callFrame')
  const name = textField(frame, 'functionName')
  const url = textField(frame, 'url')
  const line = numberField(frame, 'lineNumber') + 1
  if (url === '') return name === '' ? '(anonymous)' : name
  return `${name === '' ? '(anonymous)' : name}  ${basename(url)}:${line}`
}
