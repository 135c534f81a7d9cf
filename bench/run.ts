import { spawnSync } from 'node:child_process'
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { runAlerts } from './flow/alerts.js'
import { runBeside } from './flow/beside.js'
import { runIngest } from './flow/ingest.js'
import { runCluster } from './flow/cluster.js'
import { runHostile } from './flow/hostile.js'
import { runHttp } from './flow/http.js'
import { runInsightsBench } from './flow/insights.js'
import { runPage } from './flow/page.js'
import { runProtocols } from './flow/protocols.js'
import { runMining } from './flow/mining.js'
import { runQuery } from './flow/query.js'
import { runScale } from './flow/scale.js'
import { runTail } from './flow/tail.js'
import { runWs } from './flow/ws.js'
import { listField, numberField } from './lib/api.js'
import { compareReports, renderComparison } from './lib/compare.js'
import { renderHtml } from './lib/html.js'
import { type BenchOptions, parseCommandLine, usage, withoutSecrets } from './lib/options.js'
import { printProfiles, profilesIn } from './lib/profile.js'
import { replay } from './replay.js'
import { openWorkplace } from './lib/workplace.js'
import { serviceMain } from './lib/service.js'
import { joinRuns, machine, renderText, type Report, type ScenarioResult } from './lib/report.js'

type Scenario = (options: BenchOptions, seed: number) => Promise<ScenarioResult>

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  ingest: (options, seed) =>
    options.protocols.length === 0 ? runIngest(options, seed) : runProtocols(options, seed),
  query: runQuery,
  mining: runMining,
  insights: runInsightsBench,
  http: runHttp,
  ws: runWs,
  tail: runTail,
  page: runPage,
  alerts: runAlerts,
  cluster: runCluster,
  scale: runScale,
  beside: runBeside,
  hostile: runHostile,
}

const OF_TARGET = ['ingest', 'query', 'ws', 'http']
const UNSEEN =
  'CPU, memory and ClickHouse by itself: of a deployment only what it answers is seen from here'

/** Runs the scenarios; one that fails does not discard the figures of the others. */
async function runScenarios(
  names: readonly string[],
  options: BenchOptions,
): Promise<ScenarioResult[]> {
  const results: ScenarioResult[] = []
  for (const name of names) {
    const scenario = SCENARIOS[name]
    if (scenario === undefined) throw new Error(`bug: no scenario ${name}`)
    const runs: ScenarioResult[] = []
    try {
      for (let i = 0; i < options.repeats; i++) {
        process.stderr.write(`${name}: run ${i + 1} of ${options.repeats}\n`)
        runs.push(await scenario(ofScenario(name, options), options.seed + i))
      }
    } catch (error) {
      runs.push(failed(name, runs.length, error))
    }
    const joined = joinRuns(runs)
    const skipped = options.target === null ? [] : [UNSEEN]
    results.push({ ...joined, skipped: [...joined.skipped, ...skipped] })
  }
  return results
}

/** The named scenarios, or all of them; for a deployment, those that need no server of their own. */
function namesOf(words: readonly string[], { target }: BenchOptions): readonly string[] {
  const possible = target === null ? Object.keys(SCENARIOS) : OF_TARGET
  for (const name of words) {
    if (!Object.hasOwn(SCENARIOS, name))
      throw new Error(`${name} is no scenario; --help lists them`)
    if (!possible.includes(name))
      throw new Error(`${name} starts servers of its own; --target is for ${OF_TARGET.join(', ')}`)
  }
  return words.length === 0 ? possible : words
}

/** Each has its own folder for CPU profiles. */
const ofScenario = (name: string, options: BenchOptions): BenchOptions =>
  options.cpuProf === null ? options : { ...options, cpuProf: join(options.cpuProf, name) }

function failed(scenario: string, done: number, error: unknown): ScenarioResult {
  const detail = messageOf(error)
  process.stderr.write(`bench: ${scenario}: ${detail}\n`)
  const check = { name: `run ${done + 1} came to its end`, ok: false, detail }
  return { scenario, options: {}, metrics: [], checks: [check], skipped: [], curves: [] }
}

const messageOf = (error: unknown): string =>
  error instanceof Error && error.message !== '' ? error.message : String(error)

/** Of the checkout that is measured; undefined outside of one. */
function commitOf(file: string): string | undefined {
  const argv = ['describe', '--always', '--dirty=+', '--exclude=*']
  const { status, stdout } = spawnSync('git', argv, { cwd: dirname(file), encoding: 'utf8' })
  return status === 0 ? stdout.trim() : undefined
}

function compare(files: readonly string[]): void {
  const [before, after, ...more] = files
  if (before === undefined || after === undefined || more.length > 0)
    throw new Error('compare needs two files that --json wrote')
  const [old, fresh] = [readReport(before), readReport(after)]
  process.stdout.write(renderComparison(compareReports(old, fresh)))
}

function readReport(path: string): Report {
  const text = readFileSync(path, 'utf8')
  const value: unknown = text.startsWith('{') ? JSON.parse(text) : null
  if (numberField(value, 'version') !== 1 || listField(value, 'scenarios').length === 0)
    throw new Error(`${path} is not a report that --json wrote`)
  return value as Report
}

async function main(): Promise<void> {
  const argv = process.argv.slice(2)
  if (argv.includes('--help')) {
    process.stdout.write(usage())
    return
  }
  const { words, options, json, html } = parseCommandLine(argv)
  if (words[0] === 'compare') return compare(words.slice(1))
  if (words[0] === 'replay') return await replay(options)
  const earlier = options.cpuProf === null ? [] : profilesIn(options.cpuProf)
  // An unwritable path is an error before hours of measurements, not after them.
  for (const path of [json, html]) if (path !== null) appendFileSync(path, '')
  const startedAt = new Date().toISOString()
  const [machineName, commit] = [machine(), commitOf(serviceMain())]
  const scenarios = await runScenarios(namesOf(words, options), options)
  const report: Report = {
    version: 1,
    startedAt,
    command: `npm run bench -- ${withoutSecrets(argv).join(' ')}`,
    machine: machineName,
    node: process.version,
    ...(commit === undefined ? {} : { commit }),
    scenarios,
  }
  process.stdout.write(renderText(report))
  if (json !== null) writeFileSync(json, `${JSON.stringify(report, null, 1)}\n`)
  if (html !== null) writeFileSync(html, renderHtml(report))
  if (options.cpuProf !== null) printProfiles(options.cpuProf, earlier)
  if (scenarios.some(({ checks }) => checks.some(({ ok }) => !ok))) process.exitCode = 1
}

openWorkplace()
await main().catch((error: unknown) => {
  process.stderr.write(`bench: ${messageOf(error)}\n`)
  process.exitCode = 1
})
