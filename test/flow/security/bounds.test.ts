/** Users who create records of every bounded kind at once. */
import t from 'tap'
import { startLiveService, type Answer } from '../../support/live-service.js'

const OWN = 12
const service = await startLiveService(t, {
  INGEST_KEYS_PER_CREATOR: String(OWN),
  APPLICATIONS_PER_CREATOR: String(OWN),
  USERS_PER_CREATOR: String(OWN),
  MAX_SOURCES: '10',
})

interface Kind {
  readonly path: string
  readonly most: number
  readonly setting?: string
  readonly body: (n: number) => object
}

const quiet = { matchers: [{ field: 'source', value: 'web' }], reason: 'x' }
const KINDS: readonly Kind[] = [
  {
    path: 'ingest-keys',
    most: OWN,
    setting: 'INGEST_KEYS_PER_CREATOR',
    body: (n) => ({ name: `key ${n}` }),
  },
  {
    path: 'applications',
    most: OWN,
    setting: 'APPLICATIONS_PER_CREATOR',
    body: (n) => ({ name: `application ${n}` }),
  },
  {
    path: 'users',
    most: OWN,
    setting: 'USERS_PER_CREATOR',
    body: (n) => ({ email: `user-${n}@example.com`, password: 'long enough for it' }),
  },
  {
    path: 'sources',
    most: 10,
    setting: 'MAX_SOURCES',
    body: (n) => ({ name: `source ${n}` }),
  },
  {
    path: 'saved-views',
    most: 200,
    body: (n) => ({
      name: `view ${n}`,
      screen: 'explore',
      kind: 'view',
      params: 'q=x',
      is_for_all: false,
      is_default: false,
    }),
  },
  {
    path: 'notification-channels',
    most: 200,
    body: (n) => ({
      name: `channel ${n}`,
      target: { type: 'webhook', url: 'https://example.com/' },
    }),
  },
  { path: 'api-tokens', most: 1_000, body: (n) => ({ name: `token ${n}` }) },
  { path: 'silences', most: 1_000, body: () => ({ ...quiet, ends_at: 'now+1h' }) },
  {
    path: 'maintenance-windows',
    most: 1_000,
    body: (n) => ({
      ...quiet,
      name: `window ${n}`,
      time_zone: 'UTC',
      days: ['mon'],
      from: '00:00',
      to: '01:00',
    }),
  },
  {
    path: 'alert-rules',
    most: 2_000,
    body: (n) => ({
      name: `rule ${n}`,
      severity: 'P3',
      enabled: false,
      kind: { type: 'dead_letters', window: '15m', share: 0.05, at_least: 100 },
    }),
  },
]

const isFull = ({ status, body }: Answer): boolean =>
  status === 429 && body.detail.code === 'overloaded' && 'limit' in body.detail.details

/** Creates until it is full, and beyond, as many at once as a client would. */
async function fill({ path, most, body }: Kind, token: string): Promise<readonly Answer[]> {
  const answers: Answer[] = []
  for (let n = 0; answers.filter(isFull).length === 0 && n < 2 * most; n += 100) {
    const some = Array.from({ length: 100 }, (_, i) => n + i).filter((i) => i < most + 30)
    const all = some.map((i) => service.call(`POST /api/${path}`, { token, json: body(i) }))
    answers.push(...(await Promise.all(all)))
  }
  return answers
}

for (const kind of KINDS)
  t.test(`${kind.path} have a bound that is exact`, async (t) => {
    const { path, most, setting } = kind
    const { access_token: token } = await service.newUser('admin')
    const count = async (): Promise<number> => {
      const { body } = await service.call(`GET /api/${path}?limit=200`, { token })
      return Array.isArray(body) ? body.length : body.items.length
    }
    // Those of the start belong to nobody, but count where all count together.
    const before = path === 'sources' || path === 'alert-rules' ? await count() : 0
    const answers = await fill(kind, token)
    const made = answers.filter(({ status }) => status === 201).length
    t.equal(made, most - before, JSON.stringify(answers.find(({ status }) => status !== 201)?.body))
    const refused = answers.find(isFull)
    t.match(refused?.body.detail, { code: 'overloaded', details: { limit: most } })
    t.equal(refused?.body.detail.details.setting, setting)
    t.ok(isFull(await service.call(`POST /api/${path}`, { token, json: kind.body(most + 30) })))
  })
