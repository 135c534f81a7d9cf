import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** What the services of the tests are set up with. */
export const ADMIN = { email: 'root@example.com', password: 'the-first-password' }
export const INGEST_KEY = 'ik_0123456789abcdefghijABCDEFGHIJ0123456789'
export const JWT_SECRET = 'a secret for tests, longer than 32 characters'
export const WEBHOOK_SECRET = 'webhook secret for tests'

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url))
const READY_MS = 60_000

interface Test {
  teardown(end: () => Promise<void>): void
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** the reply as JSON, null when it is none; fields are asked for without a check, as a client does */
  // oxlint-disable-next-line typescript/no-explicit-any -- what a reply holds is what is tested
  readonly body: any
}

export interface CallOptions {
  /** null = anonymous */
  readonly token?: string | null
  readonly json?: unknown
  readonly body?: string | Uint8Array<ArrayBuffer> | FormData
  readonly headers?: Readonly<Record<string, string>>
}

export interface Tokens {
  readonly access_token: string
  readonly refresh_token: string
}

export interface LiveService {
  readonly api: string
  readonly collector: string
  /** of the first superadmin */
  readonly token: string
  /** `call('GET /api/logs')`, by the superadmin unless told otherwise */
  readonly call: (request: string, options?: CallOptions) => Promise<Answer>
  readonly login: (email: string, password: string) => Promise<Tokens>
  /** Makes a user and logs in. */
  readonly newUser: (role: string) => Promise<NewUser>
  /** Sends events and insists on their being taken. */
  readonly ingest: (events: readonly object[]) => Promise<Answer>
  /** Logs in again: the tokens of an earlier process are good, but a long test outlives them. */
  readonly restart: (signal?: NodeJS.Signals) => Promise<void>
  readonly stop: (signal?: NodeJS.Signals) => Promise<void>
  /** what the process has logged */
  readonly log: () => string
}

export interface NewUser extends Tokens {
  readonly id: string
  readonly email: string
  readonly password: string
}

/** Limits that the tests' own requests never meet. */
const GENEROUS = {
  LOGIN_LIMIT: '1000/60',
  REFRESH_LIMIT: '1000/60',
  SOURCE_CREATE_LIMIT: '1000/60',
  CLEAR_ALL_LIMIT: '1000/60',
  WS_LIMITER: '1000/60',
}

/** Starts the built service in a directory of its own; it ends with the test. */
export async function startLiveService(
  t: Test,
  env: Readonly<Record<string, string>> = {},
): Promise<LiveService> {
  const dataDir = await mkdtemp(join(tmpdir(), 'live-service-'))
  const settings = {
    PATH: process.env['PATH'] ?? '',
    HOME: process.env['HOME'] ?? '',
    DATA_DIR: join(dataDir, 'data'),
    API_PORT: '0',
    COLLECTOR_PORT: '0',
    LOG_LEVEL: 'info',
    WORKERS: '1',
    ADMIN_EMAIL: ADMIN.email,
    ADMIN_PASSWORD: ADMIN.password,
    INGEST_KEY,
    JWT_SECRET,
    WEBHOOK_SECRET,
    ...GENEROUS,
    ...env,
  }
  const state: State = { run: await launch(settings), token: '' }
  t.teardown(async () => {
    await end(state.run.child, 'SIGTERM')
    await rm(dataDir, { recursive: true, force: true })
  })
  const service = toService(state, settings)
  state.token = (await service.login(ADMIN.email, ADMIN.password)).access_token
  return service
}

interface State {
  run: Run
  token: string
}

interface Run {
  readonly child: ChildProcess
  readonly api: string
  readonly collector: string
  readonly log: () => string
}

async function launch(env: Readonly<Record<string, string>>): Promise<Run> {
  const child = spawn(process.execPath, [MAIN], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let out = ''
  let log = ''
  child.stdout.on('data', (chunk) => (out += String(chunk)))
  child.stderr.on('data', (chunk) => (log += String(chunk)))
  process.once('exit', () => child.kill('SIGKILL'))
  const untilMs = Date.now() + READY_MS
  for (;;) {
    const api = /API {8}(\S+)\/api/.exec(out)?.[1]
    const collector = /collector {2}(\S+)\/ingest/.exec(out)?.[1]
    if (api !== undefined && collector !== undefined)
      return { child, api, collector, log: () => log }
    if (child.exitCode !== null || Date.now() > untilMs) {
      child.kill('SIGKILL')
      throw new Error(`the service did not start: ${out}${log}`)
    }
    await sleep(20)
  }
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}

function toService(state: State, settings: Readonly<Record<string, string>>): LiveService {
  const call: LiveService['call'] = (request, options = {}) =>
    send(request.startsWith('http') ? '' : state.run.api, request, {
      token: state.token,
      ...options,
    })
  const login = async (email: string, password: string): Promise<Tokens> => {
    const reply = await call('POST /api/auth/login', { token: null, json: { email, password } })
    if (reply.status !== 200) throw new Error(`login of ${email}: ${reply.text}`)
    return reply.body
  }
  let users = 0
  return {
    get api() {
      return state.run.api
    },
    get collector() {
      return state.run.collector
    },
    get token() {
      return state.token
    },
    call,
    login,
    newUser: async (role) => {
      const [email, password] = [`${role}-${++users}@example.com`, `password of ${role}`]
      const made = await call('POST /api/users', { json: { email, password, role } })
      if (made.status !== 201) throw new Error(`user ${email}: ${made.text}`)
      return { id: made.body.id, email, password, ...(await login(email, password)) }
    },
    ingest: async (events) => {
      const body = events.map((event) => JSON.stringify(event)).join('\n')
      const reply = await send(state.run.collector, 'POST /ingest', { token: INGEST_KEY, body })
      if (reply.status !== 202) throw new Error(`ingest: ${reply.status} ${reply.text}`)
      return reply
    },
    restart: async (signal = 'SIGTERM') => {
      await end(state.run.child, signal)
      state.run = await launch(settings)
    },
    stop: (signal = 'SIGTERM') => end(state.run.child, signal),
    log: () => state.run.log(),
  }
}

async function send(base: string, request: string, options: CallOptions): Promise<Answer> {
  const [method = '', path = ''] = request.split(' ')
  const { token = null, json, headers = {} } = options
  const body = json === undefined ? options.body : JSON.stringify(json)
  const reply = await fetch(base + path, {
    method,
    redirect: 'manual',
    headers: {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body }),
  })
  const text = await reply.text()
  const isJson = reply.headers.get('content-type')?.includes('json') ?? false
  return {
    status: reply.status,
    headers: reply.headers,
    text,
    body: isJson && text !== '' ? JSON.parse(text) : null,
  }
}

/** Sends to the collector as it is, whatever comes back. */
export const collect = (
  service: LiveService,
  request: string,
  options: CallOptions = {},
): Promise<Answer> => send(service.collector, request, options)

/**
 * Asks again until what was written shows.
 *
 * @returns the first answer that satisfies
 * @throws Error with the last answer when none does
 */
export async function eventually<T>(
  ask: () => Promise<T>,
  satisfies: (answer: T) => boolean,
  waitMs = 20_000,
): Promise<T> {
  const untilMs = Date.now() + waitMs
  for (;;) {
    const answer = await ask()
    if (satisfies(answer)) return answer
    if (Date.now() > untilMs) throw new Error(`still ${JSON.stringify(answer)}`.slice(0, 2000))
    await sleep(50)
  }
}

/** Resolves when nothing that was taken waits for ClickHouse any more: it is in every count. */
export async function settled(service: LiveService): Promise<void> {
  await eventually(
    async () => (await service.call('GET /metrics')).text,
    (metrics) => /spool_entries 0$/m.test(metrics),
  )
}
