import { isMultipart } from '../../src/api/route.js'
import { allRoutes } from '../../src/api/routes.js'
import { collect, settled, type Answer, type LiveService, type NewUser } from './live-service.js'
import { INGEST_KEY } from './service.js'

// oxlint-disable typescript/no-explicit-any -- bodies and replies of many shapes

interface Base {
  readonly params?: Readonly<Record<string, string>>
  readonly body?: object
  /** The status, when it is not the route's own. */
  readonly status?: number
  /** When it is not that of the superadmin. */
  readonly token?: string | null
}

type Route = (typeof allRoutes)[number]

export interface RouteRequest extends Base {
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  /** Sent instead of the body as JSON. */
  readonly text?: string
}

/** A service with records of every kind, and a request to each route that succeeds. */
export interface EveryRoute {
  readonly routes: readonly Route[]
  /** By the id of the route. What a request deletes is created for it. */
  readonly base: (id: string) => Promise<Base>
  readonly names: readonly string[]
  readonly send: (route: Route, request: RouteRequest) => Promise<Answer>
  /** An account that no request changes. */
  readonly user: NewUser
  readonly keyId: string
  /** Events of the source `bird`, which no request deletes. */
  readonly birds: number
}

let count = 0
const aChannel = (): object => ({
  name: fresh('channel'),
  target: { type: 'webhook', url: 'http://127.0.0.1:9/', secret: 'canary secret' },
})
const aRule = (name: string): object => ({
  name,
  severity: 'P4',
  q: 'source:nobody',
  kind: { type: 'threshold', window: '1m', op: '>', fire: 1_000 },
})
const SILENCE = {
  matchers: [{ field: 'source', value: 'nobody' }],
  reason: 'canary reason',
  ends_at: 'now+1h',
}
const WINDOW = {
  name: 'canary window',
  reason: 'canary reason',
  matchers: SILENCE.matchers,
  time_zone: 'Europe/Berlin',
  days: ['mon'],
  from: '01:00',
  to: '02:00',
}
const aView = (): object => ({
  name: fresh('view'),
  screen: 'explore',
  kind: 'view',
  params: 'q=severity:error',
  is_for_all: true,
  is_default: false,
})
const fresh = (what: string): string => `${what}-${++count}`

export async function everyRoute(service: LiveService): Promise<EveryRoute> {
  await service.ingest([
    ...Array.from({ length: 12 }, (_, i) => ({
      source: 'bird',
      host: 'cage',
      message: `egg ${'abcdefghijkl'[i]}`,
    })),
    { source: 'bird', severity: 'ERROR', message: 'the cat is near' },
  ])
  await collect(service, 'POST /ingest', {
    token: INGEST_KEY,
    body: '{"source":"bird"}\n{"source":"bird"',
  })
  await settled(service)
  const made = async (path: string, json: object): Promise<any> => {
    const reply = await service.call(`POST /api/${path}`, { json })
    if (reply.status !== 201) throw new Error(`${path}: ${reply.text}`)
    return reply.body
  }
  const [event] = (await service.call('GET /api/logs?source=bird')).body.items
  const incident = await made('incidents', { title: 'open cage', severity: 'P2' })
  const alert = await made('alerts', { title: 'cat', severity: 'P1' })
  const rule = await made('alert-rules', aRule('eggs'))
  const channel = await made('notification-channels', aChannel())
  const silence = await made('silences', SILENCE)
  const window = await made('maintenance-windows', WINDOW)
  const view = await made('saved-views', aView())
  const task = await made('tasks', { title: 'feed' })
  const application = await made('applications', { name: 'zoo' })
  const key = await made('ingest-keys', { name: 'canary key' })
  await service.call('POST /api/ai-insights/snapshot/refresh')
  const user = await service.newUser('viewer')
  /** The user whose e-mail, role and password are changed. */
  const other = await service.newUser('viewer')
  /** The user whose sessions end, and who begins a second factor. */
  const self = await service.newUser('viewer')
  const proof = { current_password: 'a wrong password', code: '000000' }

  /** A request for each route that succeeds; a route without one fails the test below. */
  const bases: Readonly<Record<string, () => Base | Promise<Base>>> = {
    login: () => ({ body: { email: user.email, password: user.password } }),
    refresh: async () => {
      const { refresh_token } = await service.login(user.email, user.password)
      return { body: { refresh_token } }
    },
    listProviders: () => ({}),
    beginOidc: () => ({ params: { provider: 'none' }, status: 404 }),
    finishOidc: () => ({ params: { provider: 'none' }, status: 404 }),
    logout: () => ({ body: {} }),
    me: () => ({}),
    listSessions: () => ({}),
    endSession: async () => {
      const { access_token: token } = await service.login(user.email, user.password)
      const [, claims = ''] = token.split('.')
      const { family } = JSON.parse(Buffer.from(claims, 'base64url').toString())
      return { token, params: { id: family } }
    },
    endOtherSessions: () => ({ token: self.access_token }),
    secondFactor: () => ({}),
    beginSecondFactor: () => ({
      token: self.access_token,
      body: { current_password: self.password },
    }),
    confirmSecondFactor: () => ({ body: { code: '000000' }, status: 404 }),
    renewRecoveryCodes: () => ({ body: proof, status: 404 }),
    disableSecondFactor: () => ({ body: proof, status: 404 }),
    removeSecondFactor: () => ({ params: { id: other.id }, status: 404 }),
    listEvents: () => ({}),
    getEvent: () => ({ params: { event_id: event.id } }),
    explainPriority: () => ({ params: { event_id: event.id } }),
    correctPriority: () => ({
      params: { event_id: event.id },
      body: { priority: 'P3', reason: 'x' },
    }),
    deleteEvents: () => ({}),
    exportEvents: () => ({}),
    histogram: () => ({}),
    eventContext: () => ({ params: { event_id: event.id } }),
    getTrace: () => ({ params: { trace_id: 'none' }, status: 404 }),
    explainSpan: () => ({ body: { q: 'source:bird', start_time: 'now-1h' } }),
    facets: () => ({}),
    fields: () => ({}),
    stats: () => ({}),
    parseQuery: () => ({ body: { q: 'severity:error egg*', position: 4 } }),
    topTemplates: () => ({}),
    getTemplate: () => ({ params: { template_id: event.template_id } }),
    setTemplateNote: () => ({
      params: { template_id: event.template_id },
      body: { text: 'canary note' },
    }),
    timeSeries: () => ({}),
    calendar: () => ({}),
    severityBreakdown: () => ({}),
    topSources: () => ({}),
    deadVsStored: () => ({}),
    ledger: () => ({}),
    kpis: () => ({}),
    refreshInsights: () => ({}),
    insightSnapshot: () => ({}),
    usual: () => ({}),
    listAnomalies: () => ({}),
    explainAnomaly: () => ({ params: { anomaly_id: '0123456789abcdef' }, status: 404 }),
    listIncidents: () => ({}),
    getIncident: () => ({ params: { id: incident.id } }),
    createIncident: () => ({ body: { title: 'x', severity: 'P3' } }),
    changeIncident: () => ({ params: { id: incident.id }, body: { title: 'open cage' } }),
    deleteIncident: async () => {
      const { id } = await made('incidents', { title: 'x', severity: 'P4' })
      return { params: { id } }
    },
    transitionIncident: async () => {
      const { id } = await made('incidents', { title: 'x', severity: 'P4' })
      return { params: { id }, body: { to: 'acknowledged' } }
    },
    addIncidentNote: () => ({ params: { id: incident.id }, body: { text: 'x' } }),
    listAlerts: () => ({}),
    createAlert: () => ({ body: { title: 'x', severity: 'P3' } }),
    readAlert: () => ({ params: { alert_id: alert.id } }),
    acknowledgeAlert: () => ({ params: { alert_id: alert.id } }),
    readAllAlerts: () => ({}),
    listChannels: () => ({}),
    getChannel: () => ({ params: { id: channel.id } }),
    createChannel: () => ({ body: aChannel() }),
    replaceChannel: () => ({ params: { id: channel.id }, body: aChannel() }),
    deleteChannel: async () => ({
      params: { id: (await made('notification-channels', aChannel())).id },
    }),
    testChannel: () => ({ params: { id: channel.id } }),
    listSavedViews: () => ({}),
    createSavedView: () => ({ body: aView() }),
    replaceSavedView: () => ({ params: { id: view.id }, body: aView() }),
    deleteSavedView: async () => ({
      params: { id: (await made('saved-views', aView())).id },
    }),
    listAlertRules: () => ({}),
    createAlertRule: () => ({ body: aRule(fresh('rule')) }),
    exportAlertRules: () => ({}),
    importAlertRules: () => ({ body: { rules: [aRule('imported')] } }),
    getAlertRule: () => ({ params: { id: rule.id } }),
    replaceAlertRule: () => ({ params: { id: rule.id }, body: aRule('eggs') }),
    deleteAlertRule: async () => ({
      params: { id: (await made('alert-rules', aRule(fresh('rule')))).id },
    }),
    alertRuleVersions: () => ({ params: { id: rule.id } }),
    backtestAlertRule: () => ({ body: { rule: aRule('eggs'), days: 1 } }),
    previewSilence: () => ({ body: { matchers: SILENCE.matchers } }),
    listSilences: () => ({}),
    getSilence: () => ({ params: { id: silence.id } }),
    createSilence: () => ({ body: SILENCE }),
    replaceSilence: () => ({ params: { id: silence.id }, body: SILENCE }),
    deleteSilence: async () => ({ params: { id: (await made('silences', SILENCE)).id } }),
    listMaintenanceWindows: () => ({}),
    getMaintenanceWindow: () => ({ params: { id: window.id } }),
    createMaintenanceWindow: () => ({ body: WINDOW }),
    replaceMaintenanceWindow: () => ({ params: { id: window.id }, body: WINDOW }),
    deleteMaintenanceWindow: async () => ({
      params: { id: (await made('maintenance-windows', WINDOW)).id },
    }),
    alertRuleHistory: () => ({ params: { id: rule.id } }),
    listSources: () => ({}),
    createSource: () => ({ body: { name: fresh('source') } }),
    uploadEphemeral: () => ({ body: { file_type: 'txt', source_name: fresh('upload') } }),
    changeSource: () => ({ params: { name: 'bird' }, body: { retention_days: null } }),
    toggleSource: () => ({ params: { name: 'bird' } }),
    deleteSource: async () => {
      const { name } = await made('sources', { name: fresh('to-go') })
      return { params: { name } }
    },
    listApplications: () => ({}),
    getApplication: () => ({ params: { app_id: application.id } }),
    createApplication: () => ({ body: { name: fresh('application') } }),
    changeApplication: () => ({
      params: { app_id: application.id },
      body: { retention_days: null },
    }),
    deleteApplication: async () => {
      const { id } = await made('applications', { name: fresh('to-go') })
      return { params: { app_id: id } }
    },
    health: () => ({}),
    collectors: () => ({}),
    storage: () => ({}),
    metrics: () => ({}),
    listDeadLetters: () => ({}),
    replayDeadLetters: () => ({ body: { ids: [9_007_199_254_740_991] } }),
    listAudit: () => ({}),
    listTasks: () => ({}),
    getTask: () => ({ params: { id: task.id } }),
    createTask: () => ({ body: { title: 'x' } }),
    changeTask: () => ({ params: { id: task.id }, body: { title: 'feed' } }),
    deleteTask: async () => {
      const { id } = await made('tasks', { title: 'x' })
      return { params: { id } }
    },
    listUsers: () => ({}),
    createUser: () => ({
      body: { email: `${fresh('u')}@example.com`, password: 'long enough for it' },
    }),
    getUser: () => ({ params: { id: user.id } }),
    changeUser: () => ({ params: { id: other.id }, body: { is_active: true } }),
    deleteUser: async () => {
      const body = { email: `${fresh('gone')}@example.com`, password: 'long enough for it' }
      return { params: { id: (await made('users', body)).id } }
    },
    setUserRole: () => ({ params: { id: other.id }, body: { role: 'viewer' } }),
    setUserPassword: () => ({ params: { id: other.id }, body: { password: 'long enough for it' } }),
    listIngestKeys: () => ({}),
    createIngestKey: () => ({ body: { name: 'x' } }),
    deleteIngestKey: async () => ({
      params: { id: (await made('ingest-keys', { name: 'to go' })).id },
    }),
    listApiTokens: () => ({}),
    createApiToken: () => ({ body: { name: 'x' } }),
    deleteApiToken: async () => ({
      params: { id: (await made('api-tokens', { name: 'to go' })).id },
    }),
    clearAll: () => ({}),
  }

  return {
    routes: allRoutes,
    names: Object.keys(bases),
    base: async (id) => (await bases[id]?.()) ?? {},
    send: (route, request) => send(service, route, request),
    user,
    keyId: key.id,
    birds: 13,
  }
}

export const isForm = (route: Route): boolean => isMultipart(route.body)
const required: Readonly<Record<string, string>> = {
  toggleSource: 'enabled=true',
  deleteEvents: 'start_time=now-1h&end_time=now&expected=0&source=nowhere',
}

function send(service: LiveService, route: Route, request: RouteRequest): Promise<Answer> {
  const { params = {}, query = {}, headers = {}, body, text } = request
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(params[name] ?? ''),
  )
  const pairs = Object.entries(query).map(
    ([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`,
  )
  const asked = [...(required[route.id] === undefined ? [] : [required[route.id]]), ...pairs]
  const line = `${route.method.toUpperCase()} ${path}${asked.length > 0 ? `?${asked.join('&')}` : ''}`
  // A log-out would end the session that all requests are made with.
  const given = route.id === 'logout' ? null : request.token
  const token = given === undefined ? {} : { token: given }
  if (isForm(route)) return service.call(line, { ...token, headers, body: toForm(body ?? {}) })
  if (text === undefined)
    return service.call(line, { ...token, headers, ...(body === undefined ? {} : { json: body }) })
  const typed = { 'content-type': 'application/json', ...headers }
  return service.call(line, { ...token, headers: typed, body: text })
}

function toForm(fields: object): FormData {
  const form = new FormData()
  const { file_name = 'a.txt', ...rest }: Record<string, unknown> = { ...fields }
  for (const [name, value] of Object.entries(rest)) form.set(name, String(value))
  form.set('file', new Blob([`uploaded ${++count}`]), String(file_name))
  return form
}
