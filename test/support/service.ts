import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { MINUTE_MS } from '../../src/model/time.js'
import { bound } from './bound.js'

export const INGEST_KEY = 'ik_for_the_flow_tests_0123456789'
export const METRICS_TOKEN = 'metrics-token-of-the-tests'
export const ADMIN = { email: 'admin@example.com', password: 'correct horse battery' }

const MAIN = fileURLToPath(new URL('../../program/main.js', import.meta.url))
/** A start on a machine that is busy with fifty others takes less. */
export const READY_MS = 5 * MINUTE_MS

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface Service {
  readonly pid: number
  readonly api: string
  readonly collector: string
  /** The output until it was ready. */
  readonly banner: string
  /** The log so far. */
  log(): string
  readonly ended: Promise<Ended>
  /** Ends it by SIGTERM. */
  stop(): Promise<Ended>
  /** Kills the process. */
  kill(): Promise<Ended>
}

/** The part of tap's tests that ends something after the test. */
interface Owner {
  teardown(end: () => Promise<unknown> | void): void
}

export function tempDataDir(owner: Owner): string {
  const dir = mkdtempSync(join(tmpdir(), 'service-test-'))
  owner.teardown(() => rmSync(dir, { recursive: true, force: true, maxRetries: 5 }))
  return dir
}

interface Spawned {
  readonly child: ChildProcess
  readonly output: { stdout: string; stderr: string }
  readonly ended: Promise<Ended>
}

type Env = Readonly<Record<string, string>>

const COMMON: Env = {
  NODE_ENV: 'test',
  LOG_LEVEL: 'warn',
  API_PORT: '0',
  COLLECTOR_PORT: '0',
  WORKERS: '1',
  LOGIN_LIMIT: '1000/60',
  SOURCE_CREATE_LIMIT: '1000/60',
  CLEAR_ALL_LIMIT: '100/60',
  METRICS_TOKEN,
}

/** Fixed credentials; without them the first start generates its own. */
export const KNOWN: Env = {
  INGEST_KEY,
  ADMIN_EMAIL: ADMIN.email,
  ADMIN_PASSWORD: ADMIN.password,
}

function run(
  env: Env,
  args: readonly string[] = [],
  main = MAIN,
  before: readonly string[] = [],
): Spawned {
  const { PATH = '', HOME = '', TMPDIR = tmpdir() } = process.env
  // tap adds an option that loads its module hooks in each thread of each Node.js process
  const options = `NODE_OPTIONS=${env['NODE_OPTIONS'] ?? ''}`
  const [command = '', ...words] = [...before, 'env', options, process.execPath, main, ...args]
  const child = spawn(...bound(command, words), {
    env: { PATH, HOME, TMPDIR, ...COMMON, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text))
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal, ...output }))
  })
  return { child, output, ended }
}

/** Starts the built program, maybe behind another command, and waits for its end: for starts that fail, and for commands. */
export async function runToEnd(
  env: Env,
  args: readonly string[] = [],
  before: readonly string[] = [],
): Promise<Ended> {
  const { child, ended } = run(env, args, MAIN, before)
  const timer = setTimeout(() => child.kill('SIGKILL'), READY_MS)
  return await ended.finally(() => clearTimeout(timer))
}

/** Starts the built program behind another command, such as one that makes it the first process of its own. */
export function runBehind(before: readonly string[], env: Env) {
  const { child, ended } = run(env, [], MAIN, before)
  const clickhouse = join(env['DATA_DIR'] ?? '', 'clickhouse', 'clickhouse')
  return {
    pid: child.pid ?? 0,
    /** Whether its engine has started. */
    hasBegun: (): boolean => child.exitCode !== null || existsSync(join(clickhouse, 'status')),
    ended,
    kill: async (): Promise<void> => {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** Starts the built program and kills it after a random time, ready or not. */
export async function runAndKill(env: Env, afterMs: number): Promise<void> {
  const { child, ended } = run(env)
  await sleep(afterMs)
  child.kill('SIGKILL')
  await ended
}

/** Starts a command and kills it as soon as a condition is true. */
export async function killWhen(
  env: Env,
  args: readonly string[],
  isReached: () => boolean,
): Promise<Ended> {
  const { child, ended } = run(env, args)
  while (child.exitCode === null && !isReached()) await sleep(2)
  child.kill('SIGKILL')
  return await ended
}

/** A started program that may not be ready. */
export interface Launched {
  readonly pid: number
  readonly ended: Promise<Ended>
  kill(): Promise<Ended>
  /** @throws Error with its output when it ends instead */
  ready(): Promise<Service>
}

/** Starts the built program, or another build of it. */
export function launchService(owner: Owner, env: Env, main?: string): Launched {
  const { child, output, ended } = run(env, [], main)
  owner.teardown(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const end = (signal: NodeJS.Signals): Promise<Ended> => {
    child.kill(signal)
    return ended
  }
  const isReady = (): boolean => /curl .*\n/.test(output.stdout)
  const url = (name: string): string =>
    new RegExp(`${name} +(http://[^/]+)`).exec(output.stdout)?.[1] ?? ''
  const pid = child.pid ?? 0
  const kill = (): Promise<Ended> => end('SIGKILL')
  return {
    pid,
    ended,
    kill,
    async ready() {
      for (const until = Date.now() + READY_MS; !isReady(); await sleep(20)) {
        const isOver = child.exitCode !== null || child.signalCode !== null
        if (isOver || Date.now() > until)
          throw new Error(`it did not start: ${output.stdout}\n${output.stderr}`)
      }
      return {
        pid,
        api: url('API'),
        collector: url('collector'),
        banner: output.stdout,
        log: () => output.stderr,
        ended,
        stop: () => end('SIGTERM'),
        kill,
      }
    },
  }
}

/**
 * Starts the built program and waits until it is ready.
 *
 * @throws Error with what it printed when it ends instead
 */
export const startService = (owner: Owner, env: Env): Promise<Service> =>
  launchService(owner, env).ready()

/** The process of the embedded ClickHouse. @throws Error when there is none */
export function enginePid(service: Pick<Service, 'pid'>): number {
  const pid = childOf(service.pid)
  if (pid !== null) return pid
  throw new Error('the service has no child')
}

/** The first child of a process; null when there is none. */
export function childOf(pid: number): number | null {
  try {
    const child = Number.parseInt(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'), 10)
    return child > 0 ? child : null
  } catch {
    return null
  }
}

interface Counts {
  readonly received: number
  readonly accepted: number
  readonly rejected: number
  readonly dropped: number
}

/** Sends a body to `/ingest`. */
export async function ingest(
  service: Pick<Service, 'collector'>,
  body: string | Uint8Array<ArrayBuffer>,
  headers: Env = {},
  query = '',
): Promise<Response> {
  return await fetch(`${service.collector}/ingest${query}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${INGEST_KEY}`,
      // By default a text is `text/plain`.
      'content-type': 'application/x-ndjson',
      ...headers,
    },
    body,
  })
}

export interface Caller {
  readonly token: string
  get<T>(path: string): Promise<T>
  call(method: string, path: string, body?: unknown): Promise<Response>
}

/** Logs in as the first superadmin. */
export async function logIn(service: Service, account: object = ADMIN): Promise<Caller> {
  const response = await fetch(`${service.api}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(account),
  })
  if (response.status !== 200) throw new Error(`login: ${await response.text()}`)
  const { access_token: token } = (await response.json()) as { readonly access_token: string } // its contract
  const call = (method: string, path: string, body?: unknown): Promise<Response> =>
    fetch(`${service.api}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body === undefined
        ? {}
        : { body: body instanceof FormData ? body : JSON.stringify(body) }),
    })
  return {
    token,
    call,
    get: async <T>(path: string): Promise<T> => {
      const reply = await call('GET', path)
      if (reply.status !== 200) throw new Error(`${path}: ${reply.status} ${await reply.text()}`)
      return (await reply.json()) as T // the caller names the contract of the path
    },
  }
}

/** Uploads a file as a source of its own. */
export async function upload(
  service: Service,
  caller: Caller,
  file: { readonly type: 'csv' | 'json' | 'txt'; readonly source: string; readonly text: string },
): Promise<Response> {
  const form = new FormData()
  form.set('file', new Blob([file.text]), `file.${file.type}`)
  form.set('file_type', file.type)
  form.set('source_name', file.source)
  return await fetch(`${service.api}/api/sources/ephemeral`, {
    method: 'POST',
    headers: { authorization: `Bearer ${caller.token}` },
    body: form,
  })
}

export interface Item {
  readonly id: number
  readonly timestamp: string
  readonly message: string
  readonly source: string
  readonly priority: string
  readonly occurrence_count: number
}

interface Page {
  readonly items: readonly Item[]
  readonly next_cursor: string | null
  readonly has_more: boolean
}

/** All events of a query, page by page. */
export async function allEvents(
  caller: Caller,
  query: Env,
  betweenPages: () => Promise<unknown> = async () => undefined,
): Promise<readonly Item[]> {
  const items: Item[] = []
  for (let cursor: string | null = ''; cursor !== null; await betweenPages()) {
    const params = new URLSearchParams({
      limit: '200',
      ...query,
      ...(cursor === '' ? {} : { cursor }),
    })
    const page: Page = await caller.get<Page>(`/api/logs?${params.toString()}`)
    items.push(...page.items)
    if (page.has_more === (page.next_cursor === null))
      throw new Error('has_more and next_cursor differ')
    cursor = page.next_cursor
  }
  return items
}

/** Messages counted for a source in the last 30 days. */
export async function countOf(caller: Caller, source: string): Promise<number> {
  const { items } = await caller.get<{ items: readonly { source: string; count: number }[] }>(
    '/api/analytics/top-sources?window=30d&limit=50',
  )
  return items.find((item) => item.source === source)?.count ?? 0
}

/** Waits until a count is reached and stays the same for a while, so that an excess is seen. */
export async function settledCount(
  count: () => Promise<number>,
  expected: number,
): Promise<number> {
  const untilMs = Date.now() + READY_MS
  let last = await count()
  for (;;) {
    await sleep(last < expected ? 100 : 700)
    const next = await count()
    const isSettled = next === last && next >= expected
    if (isSettled || Date.now() > untilMs) return next
    last = next
  }
}

/** Sends bodies one after the other until it is stopped. @returns the acknowledged messages */
export async function load(
  service: Pick<Service, 'collector'>,
  sender: number,
  isOver: () => boolean,
  tell: (acknowledged: number) => void = () => undefined,
): Promise<number> {
  let acknowledged = 0
  for (let body = 0; !isOver(); body++) {
    const events = Array.from({ length: 50 }, (_, i) => ({
      source: 'load',
      // A third are repeats, the others are new.
      message: i % 3 === 0 ? 'heartbeat missed' : `job ${sender}-${body}-${i} finished`,
    }))
    const text = events.map((event) => JSON.stringify(event)).join('\n')
    const response = await ingest(service, text).catch(() => null)
    if (response?.status !== 202) continue
    const counts = (await response.json().catch(() => null)) as Counts | null // of the collector
    acknowledged += counts?.accepted ?? 0
    tell(acknowledged)
  }
  return acknowledged
}

export async function metricsOf(service: Service): Promise<string> {
  const reply = await fetch(`${service.api}/metrics`, {
    headers: { authorization: `Bearer ${METRICS_TOKEN}` },
  })
  return await reply.text()
}

/** Datagrams that the listeners counted as lost. */
export async function lostDatagrams(service: Service): Promise<number> {
  const lines = (await metricsOf(service)).matchAll(
    /^log_engine_listener_lost_datagrams_total\{.*\} (\d+)$/gm,
  )
  return [...lines].reduce((sum, [, count]) => sum + Number(count), 0)
}
