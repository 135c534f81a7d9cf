import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { childrenOf } from './processes.js'

/** The addresses and credentials of a service. */
export interface Target {
  readonly api: string
  readonly collector: string
  readonly ingestKey: string
  readonly email: string
  readonly password: string
}

export interface ServiceOptions {
  /** Settings in addition to the bench's own. */
  readonly settings: Readonly<Record<string, string>>
  /** Absent: a new temporary directory, which `discard` removes. */
  readonly dataDir?: string
  /** The folder for CPU profiles; null for none. */
  readonly profileDir: string | null
}

/** A service that the bench started. */
export interface Service extends Target {
  readonly pid: number
  readonly dataDir: string
  /** The process id of the embedded ClickHouse; null without one. */
  enginePid(): number | null
  /** Stops the service; the data stay. */
  stop(): Promise<void>
  /** Removes the data. */
  discard(): void
}

/** The time limit of a start, which may first migrate an older database. */
const START_MS = 600_000
const STOP_MS = 15_000

/** The entry file of another build of the service, for comparisons. */
export const serviceMain = (): string =>
  process.env['BENCH_SERVICE'] ?? fileURLToPath(new URL('../../program/main.js', import.meta.url))

/** @throws Error with what the service printed when it does not start */
export async function startService(options: ServiceOptions): Promise<Service> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'bench-data-'))
  const login = { email: 'bench@localhost', password: 'bench-password-1' }
  const ingestKey = 'ik_bench_0123456789abcdefghijklmnop'
  const profile =
    options.profileDir === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${options.profileDir}`]
  const child = spawn(process.execPath, [...profile, serviceMain()], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      DATA_DIR: dataDir,
      API_PORT: '0',
      COLLECTOR_PORT: '0',
      INGEST_KEY: ingestKey,
      ADMIN_EMAIL: login.email,
      ADMIN_PASSWORD: login.password,
      LOG_LEVEL: 'warn',
      LOGIN_LIMIT: '1000/60',
      WS_LIMITER: '100000/60',
      WS_MAX_OPEN: '100000',
      ...options.settings,
    },
  })
  const { api, collector } = await untilReady(child)
  return {
    api,
    collector,
    ingestKey,
    ...login,
    pid: child.pid ?? 0,
    dataDir,
    enginePid: () => childrenOf(child.pid ?? 0)[0] ?? null,
    stop: () => stop(child),
    discard: () => rmSync(dataDir, { recursive: true, force: true }),
  }
}

async function untilReady(child: ChildProcess): Promise<{ api: string; collector: string }> {
  let [printed, complained] = ['', '']
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (printed += text))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complained = (complained + text).slice(-4000)
    if (process.env['BENCH_VERBOSE'] !== undefined) process.stderr.write(text)
  })
  for (const deadline = Date.now() + START_MS; Date.now() < deadline; await sleep(20)) {
    const api = /API\s+(http:\/\/[^/\s]+)/.exec(printed)?.[1]
    const collector = /collector\s+(http:\/\/[^/\s]+)/.exec(printed)?.[1]
    if (api !== undefined && collector !== undefined) return { api, collector }
    if (child.exitCode !== null) break
  }
  child.kill('SIGKILL')
  throw new Error(`the service did not start: ${complained || printed}`)
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  const late = sleep(STOP_MS, 'late' as const, { ref: false })
  if ((await Promise.race([ended, late])) === 'late') child.kill('SIGKILL')
  await ended
}
