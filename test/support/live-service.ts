import { setTimeout as sleep } from 'node:timers/promises'
import { startCluster } from './cluster.js'
import { ADMIN, KNOWN, INGEST_KEY, startService, tempDataDir, type Service } from './service.js'

/** What the services of the contract's tests are set up with. */
export const JWT_SECRET = 'a secret for tests, longer than 32 characters'
export const WEBHOOK_SECRET = 'webhook secret for tests'

/** Something that is ended after the test, as tap's tests have it. */
interface Test {
  teardown(end: () => Promise<unknown> | void): void
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
  /** Ends it in order and starts it again on other ports, with these settings changed. */
  readonly restart: (env?: Readonly<Record<string, string>>) => Promise<void>
  /** what the process has logged */
  readonly log: () => string
}

export interface NewUser extends Tokens {
  readonly id: string
  readonly email: string
  readonly password: string
}

/** Limits that the tests' own requests never meet. */
const GENEROUS = { REFRESH_LIMIT: '1000/60', CLEAR_ALL_LIMIT: '1000/60', WS_LIMITER: '1000/60' }

/** Starts the built service in a directory of its own; it ends with the test. */
export async function startLiveService(
  t: Test,
  env: Readonly<Record<string, string>> = {},
): Promise<LiveService> {
  const settings = {
    ...(env['CLICKHOUSE_URL'] === undefined ? await clusterSettings(t) : {}),
    DATA_DIR: tempDataDir(t),
    LOG_LEVEL: 'info',
    // no alert is raised but by the test
    INSIGHTS_INTERVAL_SECONDS: '0',
    ...KNOWN,
    JWT_SECRET,
    WEBHOOK_SECRET,
    ...GENEROUS,
    ...env,
  }
  const start: State['start'] = (changed = {}) => startService(t, { ...settings, ...changed })
  const state: State = { run: await start(), token: '', start }
  const service = toService(state)
  state.token = (await service.login(ADMIN.email, ADMIN.password)).access_token
  return service
}

/** With `TEST_SHARDS=2` the service stores on a cluster of so many shards instead of an engine of its own. */
async function clusterSettings(t: Test): Promise<Readonly<Record<string, string>>> {
  const shards = Number(process.env['TEST_SHARDS'] ?? 0)
  if (shards === 0) return {}
  const cluster = await startCluster(shards)
  t.teardown(() => cluster.stop())
  return cluster.env
}

interface State {
  run: Service
  token: string
  readonly start: (env?: Readonly<Record<string, string>>) => Promise<Service>
}

function toService(state: State): LiveService {
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
    restart: async (changed) => {
      await state.run.stop()
      state.run = await state.start(changed)
    },
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
