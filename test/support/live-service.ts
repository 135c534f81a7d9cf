import { setTimeout as sleep } from 'node:timers/promises'
import { startBackend, startCluster } from './cluster.js'
import { startRedis } from './redis.js'
import {
  ADMIN,
  INGEST_KEY,
  KNOWN,
  METRICS_TOKEN,
  READY_MS,
  startService,
  tempDataDir,
  type Service,
} from './service.js'

/** Credentials and settings of the services under test. */
export const JWT_SECRET = 'a secret for tests, longer than 32 characters'
export const WEBHOOK_SECRET = 'webhook secret for tests'

/** The part of tap's tests that ends something after the test. */
interface Test {
  teardown(end: () => Promise<unknown> | void): void
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The reply as JSON, without a check of its fields; null when it is no JSON. */
  // oxlint-disable-next-line typescript/no-explicit-any -- what a reply holds is what is tested
  readonly body: any
}

export interface CallOptions {
  /** Null for an anonymous request. */
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
  /** The address of the next instance, round robin. */
  readonly anyApi: () => string
  readonly collector: string
  /** A port of the first instance, by the name that it prints at its start. */
  readonly portOf: (name: string) => number
  /** The reply of each instance. */
  readonly each: (request: string, token?: string) => Promise<readonly Answer[]>
  /** The access token of the first superadmin. */
  readonly token: string
  /** For example `call('GET /api/logs')`, by default as the superadmin. */
  readonly call: (request: string, options?: CallOptions) => Promise<Answer>
  readonly login: (email: string, password: string) => Promise<Tokens>
  /** Creates a user and logs in. */
  readonly newUser: (role: string) => Promise<NewUser>
  /** Sends events. @throws Error unless all are accepted */
  readonly ingest: (events: readonly object[]) => Promise<Answer>
  /** Restarts it on other ports, with these settings changed. */
  readonly restart: (env?: Readonly<Record<string, string>>) => Promise<void>
  /** The log so far. */
  readonly log: () => string
}

export interface NewUser extends Tokens {
  readonly id: string
  readonly email: string
  readonly password: string
}

/** Limits above the rate of the tests' own requests. */
const GENEROUS = { REFRESH_LIMIT: '1000/60', CLEAR_ALL_LIMIT: '1000/60', WS_LIMITER: '1000/60' }

/**
 * Starts the built service in a directory of its own; it ends with the test. `TEST_INSTANCES=2` starts two instances
 * on one database and one Redis, and requests go to them round robin.
 */
export async function startLiveService(
  t: Test,
  env: Readonly<Record<string, string>> = {},
): Promise<LiveService> {
  const count = env['REDIS_URL'] === undefined ? Number(process.env['TEST_INSTANCES'] ?? 1) : 1
  const settings = {
    ...(env['CLICKHOUSE_URL'] === undefined ? await clusterSettings(t, count) : {}),
    ...(count > 1 ? await redisSettings(t) : {}),
    LOG_LEVEL: 'info',
    // Alerts are raised by the test only.
    INSIGHTS_INTERVAL_SECONDS: '0',
    ...KNOWN,
    JWT_SECRET,
    WEBHOOK_SECRET,
    ...GENEROUS,
    ...env,
  }
  const dirs = Array.from({ length: count }, () => tempDataDir(t))
  // They start concurrently: one of them migrates and creates the first account.
  const start: State['start'] = (changed = {}) =>
    Promise.all(dirs.map((DATA_DIR) => startService(t, { DATA_DIR, ...settings, ...changed })))
  const state: State = { runs: await start(), token: '', start, turns: 0 }
  const service = toService(state)
  // On a busy machine Redis may be unreachable for a short time.
  const { access_token: token } = await eventually(
    () => service.login(ADMIN.email, ADMIN.password).catch(() => ({ access_token: '' })),
    (tokens) => tokens.access_token !== '',
  )
  state.token = token
  return service
}

async function redisSettings(t: Test): Promise<Readonly<Record<string, string>>> {
  const redis = await startRedis()
  if (redis === null) throw new Error('TEST_INSTANCES needs redis-server')
  t.teardown(() => redis.kill())
  return { REDIS_URL: redis.url }
}

/** With `TEST_SHARDS=2` the service stores on a cluster of two shards instead of an embedded engine. */
async function clusterSettings(
  t: Test,
  instances: number,
): Promise<Readonly<Record<string, string>>> {
  const shards = Number(process.env['TEST_SHARDS'] ?? 0)
  if (shards === 0 && instances === 1) return {}
  if (shards === 0) {
    const { engine, stop } = await startBackend()
    t.teardown(stop)
    const { url, username, password } = engine
    return { CLICKHOUSE_URL: url, CLICKHOUSE_USER: username, CLICKHOUSE_PASSWORD: password }
  }
  const cluster = await startCluster(shards)
  t.teardown(() => cluster.stop())
  return cluster.env
}

interface State {
  runs: readonly Service[]
  /** The number of requests so far, for the round robin. */
  turns: number
  token: string
  readonly start: (env?: Readonly<Record<string, string>>) => Promise<readonly Service[]>
}

const instance = ({ runs }: State, at: number): Service => {
  const found = runs[at % runs.length]
  if (found === undefined) throw new Error('bug: no instance')
  return found
}

/** Each instance deduplicates its own messages, so a source is sent to one instance. */
const instanceOf = (state: State, source: unknown): Service =>
  instance(
    state,
    Array.from(String(source), (c) => c.codePointAt(0) ?? 0).reduce((a, b) => a + b, 0),
  )

function toService(state: State): LiveService {
  const call: LiveService['call'] = (request, options = {}) =>
    send(request.startsWith('http') ? '' : instance(state, state.turns++).api, request, {
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
      return instance(state, 0).api
    },
    anyApi: () => instance(state, state.turns++).api,
    get collector() {
      return instance(state, state.turns++).collector
    },
    portOf: (name) =>
      Number(new RegExp(`^ +${name} +\\S+:(\\d+)$`, 'm').exec(instance(state, 0).banner)?.[1]),
    each: (request, token = state.token) =>
      Promise.all(state.runs.map(({ api }) => send(api, request, { token }))),
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
      const [first] = events as readonly { readonly source?: unknown }[] // what tests send
      const { collector } = instanceOf(state, first?.source)
      const reply = await send(collector, 'POST /ingest', { token: INGEST_KEY, body })
      if (reply.status !== 202) throw new Error(`ingest: ${reply.status} ${reply.text}`)
      return reply
    },
    restart: async (changed) => {
      await Promise.all(state.runs.map((run) => run.stop()))
      state.runs = await state.start(changed)
    },
    log: () => state.runs.map((run) => run.log()).join(''),
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
  const isJson = /\bjson\b/.test(reply.headers.get('content-type') ?? '')
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
  waitMs = READY_MS,
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
    async () => (await service.each('GET /metrics', METRICS_TOKEN)).map(({ text }) => text),
    (all) => all.every((metrics) => /wal_records 0$/m.test(metrics)),
  )
}
