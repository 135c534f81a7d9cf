import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { runIngest } from './flow/ingest.js'
import { runCluster } from './flow/cluster.js'
import { runHttp } from './flow/http.js'
import { runInsightsBench } from './flow/insights.js'
import { runMining } from './flow/mining.js'
import { runQuery } from './flow/query.js'
import { runScale } from './flow/scale.js'
import { runWs } from './flow/ws.js'
import { listField, numberField } from './lib/api.js'
import { compareReports, renderComparison } from './lib/compare.js'
import { renderHtml } from './lib/html.js'
import { type BenchOptions, parseCommandLine, usage } from './lib/options.js'
import { printProfiles } from './lib/profile.js'
import { replay } from './replay.js'
import { joinRuns, machine, renderText, type Report, type ScenarioResult } from './lib/report.js'

type Scenario = (options: BenchOptions, seed: number) => Promise<ScenarioResult>

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  ingest: runIngest,
  query: runQuery,
  mining: runMining,
  insights: runInsightsBench,
  http: runHttp,
  ws: runWs,
  cluster: runCluster,
  scale: runScale,
}

async function runScenarios(
  names: readonly string[],
  options: BenchOptions,
): Promise<ScenarioResult[]> {
  const results: ScenarioResult[] = []
  for (const name of names) {
    const scenario = SCENARIOS[name]
    if (scenario === undefined) throw new Error(`${name} is no scenario; --help lists them`)
    const runs: ScenarioResult[] = []
    for (let i = 0; i < options.repeats; i++) {
      process.stderr.write(`${name}: run ${i + 1} of ${options.repeats}\n`)
      runs.push(await scenario(options, options.seed + i))
    }
    results.push(joinRuns(runs))
  }
  return results
}

function compare(files: readonly string[]): void {
  const [before, after, ...more] = files
  if (before === undefined || after === undefined || more.length > 0)
    throw new Error('compare needs two files that --json wrote')
  const [old, fresh] = [readReport(before), readReport(after)]
  process.stdout.write(renderComparison(compareReports(old, fresh)))
}

function readReport(path: string): Report {
  const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
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
  if (options.cpuProf !== null) mkdirSync(options.cpuProf, { recursive: true })
  const startedAt = new Date().toISOString()
  const machineName = machine()
  const scenarios = await runScenarios(words.length === 0 ? Object.keys(SCENARIOS) : words, options)
  const report: Report = {
    version: 1,
    startedAt,
    command: `npm run bench -- ${argv.join(' ')}`,
    machine: machineName,
    node: process.version,
    scenarios,
  }
  process.stdout.write(renderText(report))
  if (json !== null) writeFileSync(json, `${JSON.stringify(report, null, 1)}\n`)
  if (html !== null) writeFileSync(html, renderHtml(report))
  if (options.cpuProf !== null) printProfiles(options.cpuProf)
  if (scenarios.some(({ checks }) => checks.some(({ ok }) => !ok))) process.exitCode = 1
}

await main().catch((error: unknown) => {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
})
