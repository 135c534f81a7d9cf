import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormatsModule from 'ajv-formats'
import { generateApi } from 'swagger-typescript-api'
import { TOTP } from 'otpauth'
import t from 'tap'
import { describeApi } from '../../../src/api/description.js'
import { allRoutes } from '../../../src/api/routes.js'
import { ADMIN, INGEST_KEY } from '../../support/service.js'
import { collect, settled, startLiveService } from '../../support/live-service.js'
import { enrol } from '../../support/second-factor.js'

// oxlint-disable typescript/no-explicit-any -- the document, the client and what it returns

const folder = mkdtempSync(join(tmpdir(), 'generated-client-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
const written: any = structuredClone(describeApi('test'))
// It keeps the event loop busy for longer than the service keeps an idle connection, and fetch would use that once more.
const Api = await generateClient()
const service = await startLiveService(t)
const document: any = (await service.call('GET /openapi.json', { token: null })).body

t.test('the document is valid OpenAPI 3.1 and holds every route', async (t) => {
  const validator = new Validator()
  const { valid, errors } = await validator.validate(structuredClone(document))
  t.equal(valid, true, JSON.stringify(errors))
  t.equal(validator.version, '3.1')
  t.same({ ...document, info: written.info }, written, 'the client is generated from it')
  // Those of the collector are compared with its protocols in unit/api/protocol-description.
  const described = Object.entries<any>(document.paths).flatMap(([path, item]) =>
    Object.entries<any>(item)
      .filter(([, { tags }]) => !tags.includes('collector'))
      .map(([method]) => `${method} ${path}`),
  )
  const served = allRoutes.map(({ method, path }) => `${method} ${path}`)
  const others = ['get /ws/kpis', 'get /ws/tail']
  t.same(described.toSorted(), [...served, ...others].toSorted())
})

t.test('every operation documents its role, its success and its errors', (t) => {
  for (const { id, method, path, role, status } of allRoutes) {
    const operation = document.paths[path][method]
    t.equal(operation.operationId, id)
    t.equal(operation['x-role'], role, id)
    t.ok(operation.responses[status], id)
    const failures = Object.entries<any>(operation.responses).filter(([code]) => code >= '400')
    t.ok(failures.length > 0, id)
    for (const [code, response] of failures) {
      if (id === 'health') continue
      const { schema, examples } = response.content['application/json']
      t.equal(schema.$ref, '#/components/schemas/Error', `${id} ${code}`)
      t.ok(Object.keys(examples).length > 0, `${id} ${code}`)
    }
  }
  t.end()
})

interface Seen {
  readonly id: string
  readonly status: number
}
const seen: Seen[] = []

const operations = Object.entries<any>(document.paths).flatMap(([path, item]) =>
  Object.entries<any>(item).map(([method, operation]) => ({
    method: method.toUpperCase(),
    path,
    pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
    isFixed: !path.includes('{'),
    operation,
  })),
)

const operationOf = (id: string): any =>
  operations.find(({ operation }) => operation.operationId === id)?.operation

/** The body that the document shows for an operation. */
const exampleOf = (id: string): any =>
  operationOf(id).requestBody.content['application/json'].example

const parameterOf = (id: string, name: string): any =>
  operationOf(id).parameters.find((each: any) => each.name === name).schema

const ajv = new Ajv2020({ strict: false, allErrors: true })
addFormatsModule.default(ajv)
ajv.addSchema({ $id: 'api', components: document.components })
const compiled = new Map<string, ValidateFunction>()

/** What a reply breaks of the schema that the document gives for its status; null = nothing. */
function breach(operation: any, status: number, body: unknown): string | null {
  const response = operation.responses[status]
  if (response === undefined) return `status ${status} is not described`
  const schema = response.content?.['application/json']?.schema
  if (schema === undefined) return null
  const key = `${operation.operationId} ${status}`
  const text = JSON.stringify(schema).replaceAll('"#/components', '"api#/components')
  const check = compiled.get(key) ?? ajv.compile(JSON.parse(text))
  compiled.set(key, check)
  return check(body) ? null : ajv.errorsText(check.errors)
}

const validatorOf = (schema: any): ValidateFunction =>
  ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"api#/components')))

/** Notes each call, and holds each reply to the document. */
const checkedFetch =
  (equal: (found: unknown, wanted: unknown, message: string) => boolean) =>
  async (url: string, init: RequestInit): Promise<Response> => {
    const { pathname } = new URL(url)
    const method = init.method ?? 'GET'
    const found = operations
      .filter((each) => each.method === method && each.pattern.test(pathname))
      .toSorted((a, b) => Number(b.isFixed) - Number(a.isFixed))[0]
    const response = await fetch(url, init)
    if (found === undefined) throw new Error(`${method} ${pathname} is not described`)
    const { operation } = found
    seen.push({ id: operation.operationId, status: response.status })
    const text = await response.clone().text()
    const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false
    const body: unknown = isJson ? JSON.parse(text) : text
    equal(breach(operation, response.status, body), null, `${method} ${pathname}`)
    return response
  }

async function generateClient(): Promise<any> {
  await generateApi({
    fileName: 'client',
    output: folder,
    spec: structuredClone(written),
    httpClientType: 'fetch',
    toJS: true,
    silent: true,
  })
  const { Api } = await import(pathToFileURL(join(folder, 'client.js')).href)
  return Api
}

// oxlint-disable-next-line typescript/no-explicit-any -- the client is generated
async function driveQuiet(t: { same: (a: unknown, b: unknown) => unknown }, api: any) {
  const matchers = [{ field: 'source', value: 'nobody' }]
  const silence = { matchers, reason: 'of the client', ends_at: 'now+1h' }
  const { data: made } = await api.createSilence(silence)
  t.same((await api.listSilences()).data.items.length, 1)
  await api.replaceSilence(made.id, silence)
  t.same((await api.getSilence(made.id)).data.state, 'active')
  t.same((await api.previewSilence({ matchers })).data, { firing: 0, last_day: 0, alerts: [] })
  await api.deleteSilence(made.id)
  const times = { time_zone: 'UTC', days: ['mon'], from: '01:00', to: '02:00' }
  const window = { name: 'of the client', reason: 'x', matchers, ...times }
  const { data: opened } = await api.createMaintenanceWindow(window)
  t.same((await api.listMaintenanceWindows()).data.items.length, 1)
  await api.replaceMaintenanceWindow(opened.id, { ...window, name: 'y' })
  t.same((await api.getMaintenanceWindow(opened.id)).data.name, 'y')
  await api.deleteMaintenanceWindow(opened.id)
}

// oxlint-disable-next-line typescript/no-explicit-any -- the client is generated
async function driveAlertRules(t: { same: (a: unknown, b: unknown) => unknown }, api: any) {
  const kind = { type: 'threshold', window: '1m', op: '>', fire: 1_000 }
  const fields = { name: 'of the client', severity: 'P4', q: 'source:nobody', kind }
  const { data: rule } = await api.createAlertRule(fields)
  await api.listAlertRules()
  t.same((await api.getAlertRule(rule.id)).data.version, 1)
  t.same((await api.replaceAlertRule(rule.id, { ...fields, note: 'x' })).data.version, 2)
  const { data: exported } = await api.exportAlertRules()
  await api.importAlertRules(exported)
  t.same((await api.alertRuleHistory(rule.id)).data.items, [])
  t.same((await api.alertRuleVersions(rule.id)).data.items.length, 2)
  t.same((await api.backtestAlertRule({ rule: fields, days: 1 })).data.firing, 0)
  await api.deleteAlertRule(rule.id)
  await driveQuiet(t, api)
  const target = { type: 'webhook', url: 'http://127.0.0.1:9/' }
  const { data: channel } = await api.createChannel({ name: 'c', target })
  await api.listChannels()
  await api.getChannel(channel.id)
  await api.replaceChannel(channel.id, { name: 'd', target })
  t.same((await api.testChannel(channel.id)).data.outcome, 'refused')
  await api.deleteChannel(channel.id)
  const view = { name: 'v', screen: 'explore', kind: 'view', params: 'q=x' }
  const { data: saved } = await api.createSavedView({ ...view, is_for_all: true, is_default: true })
  await api.listSavedViews()
  await api.replaceSavedView(saved.id, { ...view, is_for_all: false, is_default: false })
  await api.deleteSavedView(saved.id)
}

t.test('a generated client drives every route, and every reply is as described', async (t) => {
  const client = new Api({
    baseUrl: service.api,
    customFetch: checkedFetch((found, wanted, message) => t.equal(found, wanted, message)),
    baseApiParams: { secure: true },
    securityWorker: (token: string | null) =>
      token === null ? {} : { headers: { authorization: `Bearer ${token}` } },
  })
  const { api, metrics } = client
  const { data: tokens } = await api.login(ADMIN)
  client.setSecurityData(tokens.access_token)
  const { data: self } = await api.me()
  t.ok((await api.listProviders()).data.password)
  t.equal(self.email, ADMIN.email)

  const { data: app } = await api.createApplication({
    name: 'shop',
    environment: 'prod',
    hosts: [],
  })
  await api.createSource({
    name: 'till',
    type: 'push',
    connector: 'custom',
    application_id: app.id,
  })
  await api.listSources()
  await api.listApplications()
  t.same((await api.getApplication(app.id)).data.sources, ['till'])
  const file = new Blob(['severity,message\nERROR,paper jam in till 4\nINFO,till 5 opened\n'])
  const { data: sent } = await api.uploadEphemeral({ file, file_type: 'csv', source_name: 'till' })
  t.same(sent.detail, { sent: 2, errors: 0 })
  await collect(service, 'POST /ingest', { token: 'no key', body: '{}' })
  await service.ingest([
    { source: 'till', message: 'receipt printed', trace_id: 'receipt-1' },
    { source: 'till', message: 7, timestamp: 'never' },
  ])
  await settled(service)

  const { data: page } = await api.listEvents({
    source: ['till'],
    limit: 2,
    severity: ['ERROR', 'INFO'],
  })
  t.equal(page.items.length, 2)
  t.equal(page.has_more, true)
  const next = { source: ['till'], limit: 2, severity: ['ERROR', 'INFO'], cursor: page.next_cursor }
  t.equal((await api.listEvents(next)).data.items.length, 1)
  const lines = await (await api.exportEvents({ source: ['till'], format: 'csv' })).text()
  t.match(lines, /# \{"complete":true,"rows":3\}\r\n$/)
  const [event] = page.items
  t.equal((await api.getEvent(event.id)).data.application, 'shop')
  await api.explainPriority(event.id)
  t.equal((await api.histogram({ source: ['till'], by: 'severity' })).data.total, 3)
  t.equal((await api.facets({ source: ['till'], fields: ['host'] })).data.total, 3)
  const counted = await api.stats({ source: ['till'], by: ['source'], metrics: ['count'] })
  t.same(counted.data.groups[0].by, { source: 'till' })
  await api.stats({ step: parameterOf('stats', 'step').examples[0] })
  t.equal((await api.eventContext(event.id, { before: 2 })).data.event.id, event.id)
  t.equal((await api.getTrace('receipt-1', {})).data.logs.length, 1)
  await api.explainSpan({ q: 'source:till', start_time: 'now-1h' })
  t.equal((await api.parseQuery({ q: 'severity:error', position: 2 })).data.error, null)
  t.equal((await api.parseQuery({ q: '(' })).data.query, null)
  t.ok((await api.fields({})).data.items.length > 10)
  const reason = 'seen by a person'
  const { data: corrected } = await api.correctPriority(event.id, { priority: 'P1', reason })
  t.match(corrected, { priority: 'P1', tags: { correction_reason: reason } })
  t.equal((await api.topTemplates({ limit: 5 })).data.length, 3)
  const note = { text: 'harmless' }
  t.match((await api.setTemplateNote(event.template_id, note)).data, { note })
  const { data: template } = await api.getTemplate(event.template_id, { hours: 24 })
  t.match(template, { note, corrections: [{ event_id: event.id, priority: 'P1', reason }] })
  t.same((await api.setTemplateNote(event.template_id, { text: ' ' })).data, { note: null })
  t.equal((await api.timeSeries({ window: '1h', source: ['till'] })).data.granularity, 'hour')
  t.equal((await api.calendar({ priority: ['P1'], days: 7 })).data[0].value, 1)
  t.equal((await api.severityBreakdown({ window: '24h' })).data.total, 3)
  t.equal((await api.topSources({ limit: 3 })).data.items[0].source, 'till')
  t.equal((await api.deadVsStored({ window: '1h' })).data.dlq, 1)
  t.ok((await api.ledger()).data.since)
  t.equal((await api.kpis()).data.unique_events, 3)

  const { data: alert } = await api.createAlert({
    title: 'jam',
    severity: 'P1',
    event_ids: [event.id],
  })
  t.equal(alert.related_source, 'till')
  await api.listAlerts({ read: false, severity: ['P1'], limit: 10 })
  t.equal((await api.readAlert(alert.id)).data.read, true)
  await api.acknowledgeAlert(alert.id)
  t.same((await api.readAllAlerts()).data, { updated: 0 })
  await driveAlertRules(t, api)

  const { data: incident } = await api.createIncident({ title: 'outage', severity: 'P2' })
  await api.listIncidents({ status: ['open'] })
  await api.changeIncident(incident.id, { title: 'a longer outage' })
  await api.transitionIncident(incident.id, exampleOf('transitionIncident'))
  await api.addIncidentNote(incident.id, { text: 'turned it off and on' })
  t.equal((await api.getIncident(incident.id)).data.status, 'acknowledged')

  const { data: user } = await api.createUser({
    email: 'ann@example.com',
    password: 'a password of ann',
    role: 'manager',
  })
  await api.listUsers({ limit: 5 })
  await api.getUser(user.id)
  await api.changeUser(user.id, { is_active: true })
  await api.setUserRole(user.id, { role: 'viewer' })
  await api.setUserPassword(user.id, { password: 'another password' })

  const { data: sessions } = await api.listSessions({ limit: 5 })
  t.match(sessions.items[0], { is_current: true, address: '127.0.0.1' })
  await service.login(ADMIN.email, ADMIN.password)
  await api.endSession((await api.listSessions({})).data.items[0].id)
  const forgetful = await service.newUser('viewer')
  await enrol(service, forgetful)
  await api.endOtherSessions()

  const { data: begun } = await api.beginSecondFactor({ current_password: ADMIN.password })
  const totp = new TOTP({ secret: begun.secret })
  const { data: codes } = await api.confirmSecondFactor({ code: totp.generate() })
  t.equal((await api.secondFactor()).data.recovery_codes_left, 10)
  const proof = (code: string) => ({ current_password: ADMIN.password, code })
  const { data: renewed } = await api.renewRecoveryCodes(proof(codes.recovery_codes[0]))
  await api.disableSecondFactor(proof(renewed.recovery_codes[0]))
  await api.removeSecondFactor(forgetful.id)

  const { data: task } = await api.createTask({
    ...exampleOf('createTask'),
    assignee_id: user.id,
    incident_id: incident.id,
  })
  await api.listTasks({ status: ['todo'] })
  t.equal((await api.changeTask(task.id, { status: 'done' })).data.status, 'done')
  await api.getTask(task.id)

  const { data: key } = await api.createIngestKey({ name: 'till keys', sources: ['till'] })
  t.equal((await api.listIngestKeys({})).data.items.at(-1).prefix, key.prefix)
  await api.deleteIngestKey(key.id)
  const { data: token } = await api.createApiToken({ name: 'till script' })
  t.equal((await api.listApiTokens({})).data.items.at(-1).prefix, token.prefix)
  await api.deleteApiToken(token.id)

  t.equal((await api.listDeadLetters({})).data.items.length, 1)
  await api.replayDeadLetters({})
  await api.listAudit({ limit: 5 })
  await api.collectors()
  t.match((await api.storage()).data, { retention_days: 90, dropped: null })
  t.equal((await api.health()).data.status, 'ok')
  t.match(await (await metrics.metrics()).text(), /^# HELP /)

  await api.refreshInsights()
  await api.insightSnapshot()
  t.same((await api.usual({ source: ['till'], start_time: 'now-1d' })).data.bars, [])
  await api.listAnomalies({})
  await api.explainAnomaly('0123456789abcdef').catch(() => undefined)

  await api.toggleSource('till', { enabled: false })
  t.equal((await api.changeSource('till', { retention_days: 7 })).data.retention_days, 7)
  const { data: unlinked } = await api.changeSource('till', { application_id: null })
  t.match(unlinked, { application_id: null, retention_days: 7 }, 'what is absent stays')
  const { data: linked } = await api.changeSource('till', { application_id: app.id })
  t.match(linked, { application_id: app.id, retention_days: 7 })
  const { data: owner } = await api.getApplication(app.id)
  t.ok(owner.hosts.includes('till') && owner.sources.includes('till'))
  const nowhere = { application_id: '00000000-0000-4000-8000-000000000000' }
  const refused = await api.changeSource('till', nowhere).catch((reply: unknown) => reply)
  t.match(refused, { status: 404 })
  await api.changeApplication(app.id, { retention_days: null })
  const span = { start_time: 'now-1h', end_time: 'now', source: ['till'], severity: ['INFO'] }
  const { data: asked } = await api.histogram(span)
  const blank = { start_time: 'now-1h', end_time: 'now', q: ' ', expected: asked.unique_events }
  const vague = await api.deleteEvents(blank).catch((reply: unknown) => reply)
  t.match(vague, { status: 422 }, 'it says nothing of what is deleted')
  const deletion = await api.deleteEvents({ ...span, expected: asked.unique_events })
  t.match(deletion.data, { deleted: asked.unique_events, remaining: 0 })
  await api.deleteSource('till')
  await api.deleteTask(task.id)
  await api.deleteIncident(incident.id)
  await api.deleteUser(user.id)
  await api.deleteApplication(app.id)
  await api.clearAll()
  // Errors must fit their description too.
  await api.getEvent(1).catch(() => undefined)
  await api.getUser('not-an-id').catch(() => undefined)
  await api.createSource({ name: '' }).catch(() => undefined)
  await api.refresh({ refresh_token: tokens.refresh_token })
  await api.logout({ refresh_token: tokens.refresh_token })
  client.setSecurityData(null)
  await api.listEvents({}).catch(() => undefined)

  const driven = new Set(seen.filter(({ status }) => status < 400).map(({ id }) => id))
  // There are no anomalies yet, so the requested one does not exist; providers are for browsers.
  const absent = new Set(['explainAnomaly', 'beginOidc', 'finishOidc'])
  const others = allRoutes.filter(({ id }) => !driven.has(id) && !absent.has(id))
  t.same(
    others.map(({ id }) => id),
    [],
    'routes that the client did not call with success',
  )
})

/** What needs a secret that no example can know, and what ends the session. */
const NEEDS_MORE = new Set([
  'login',
  'logout',
  'refresh',
  'beginSecondFactor',
  'confirmSecondFactor',
  'renewRecoveryCodes',
  'disableSecondFactor',
])

t.test('the example of every body is taken as it stands', async (t) => {
  const { access_token: token } = await service.login(ADMIN.email, ADMIN.password)
  const made = new Map<string, string>()
  const send = async ({ method, path, operation }: any): Promise<void> => {
    const { example: json } = operation.requestBody.content['application/json']
    const [, parent = '', parameter = ''] = /^(.*?)\/\{(\w+)\}/.exec(path) ?? []
    const id = made.get(parent) ?? ''
    const reply = await service.call(`${method} ${path.replace(`{${parameter}}`, id)}`, {
      token,
      json,
    })
    t.ok(reply.status < 300, `${operation.operationId}: ${reply.status} ${reply.text}`)
    t.equal(breach(operation, reply.status, reply.body), null, operation.operationId)
    if (reply.status === 201) made.set(path, encodeURIComponent(reply.body.id ?? reply.body.name))
  }
  const event = { source: 'of an example', message: 'till 4 opened' }
  await service.ingest([event])
  await settled(service)
  const { items } = (await service.call('GET /api/logs?source=of+an+example', { token })).body
  made.set('/api/logs', items[0].id).set('/api/logs/meta/templates', items[0].template_id)
  const withBody = operations.filter(
    ({ operation }) =>
      operation.requestBody?.content['application/json'] !== undefined &&
      !operation.tags.includes('collector') &&
      !NEEDS_MORE.has(operation.operationId),
  )
  t.ok(withBody.length > 30, `${withBody.length} bodies`)
  for (const each of withBody.filter(({ isFixed }) => isFixed)) await send(each)
  for (const each of withBody.filter(({ isFixed }) => !isFixed)) await send(each)
})

t.test('what the collector is said to take and answer is what it does', async (t) => {
  const { post: ingest } = document.paths['/ingest']
  for (const { method, path, operation } of operations) {
    const { content = {} } = operation.requestBody ?? {}
    if (!operation.tags.includes('collector') || path.startsWith('/webhooks')) continue
    for (const [type, { example }] of Object.entries<any>(content)) {
      if (example === undefined) continue
      const body = typeof example === 'string' ? example : JSON.stringify(example)
      const request = `${method} ${path.replace('{key}', INGEST_KEY).replaceAll(/\{(\w+)\}/g, '$1')}`
      const headers = { 'content-type': type }
      const reply = await collect(service, request, { token: INGEST_KEY, body, headers })
      t.ok(reply.status < 300, `${request}: ${reply.status} ${reply.text}`)
      t.ok(operation.responses[reply.status], `${request}: ${reply.status}`)
      if (path.endsWith('_json')) t.match(reply.body.status, [{ name: 'stream', successful: 1 }])
    }
  }
  const address = new URL(service.collector)
  const [server] = ingest.servers
  t.equal(
    server.url.replace('{host}', address.hostname).replace('{port}', address.port),
    address.origin,
  )
  for (const [type, { schema, example }] of Object.entries<any>(ingest.requestBody.content)) {
    const body = typeof example === 'string' ? example : JSON.stringify(example)
    const value = type === 'text/plain' ? body : JSON.parse(body)
    t.equal(validatorOf(schema)(value), true, type)
    const headers = { 'content-type': type }
    const reply = await collect(service, 'POST /ingest', { token: INGEST_KEY, body, headers })
    t.match([reply.status, reply.body.accepted], [202, 1])
    t.equal(breach(ingest, reply.status, reply.body), null)
  }
  const refused = await collect(service, 'POST /ingest', { token: 'no key', body: '{}' })
  t.equal(breach(ingest, refused.status, refused.body), null)
  const { post: hook } = document.paths['/webhooks/scm']
  const unsigned = await collect(service, 'POST /webhooks/scm', { body: '{}' })
  t.equal(breach(hook, unsigned.status, unsigned.body), null)
})
