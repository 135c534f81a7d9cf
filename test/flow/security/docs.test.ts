/** What senders and users have written, shown by the docs and the page in a real browser: text, and never more than that. */
import { createHmac } from 'node:crypto'
import type { Page } from 'playwright-core'
import t from 'tap'
import {
  WEBHOOK_SECRET,
  collect,
  settled,
  startLiveService,
  type LiveService,
} from '../../support/live-service.js'
import { isMissing, openBrowser } from '../../support/page.js'
import { INGEST_KEY } from '../../support/service.js'
import { webhook } from '../../support/webhooks.js'

/** Each makes an element with the attribute `data-evil`, or sets `evil`, where it is read as HTML or run. */
const SCRIPTS = [
  '<img data-evil src=x onerror=evil=1>',
  '<svg data-evil onload=evil=1>',
  '</pre></code><script data-evil>evil=1</script>',
  '"><iframe data-evil srcdoc="<script>parent.evil=1</script>"></iframe>',
  '<a data-evil href="javascript:evil=1">x</a>',
  "'-evil=1-'",
  '`<b data-evil>`**<i data-evil>**',
]
const password = 'long enough for it'
const email = '<img/data-evil/src=x/onerror=evil=1>@example.com'

const LINKS = '[...document.querySelectorAll("a[href]")].map((link) => link.href)'

/** Has users write it wherever they name or explain something. @returns the screens that show it */
async function writeEverywhere(service: LiveService): Promise<readonly string[]> {
  const [script = ''] = SCRIPTS
  const made = async (path: string, json: object) => {
    const reply = await service.call(`POST /api/${path}`, { json })
    if (reply.status !== 201) throw new Error(`${path}: ${reply.text}`)
    return reply.body
  }
  const matchers = [{ field: 'source', value: script }]
  const view = { screen: 'explore', params: `q=${encodeURIComponent(JSON.stringify(script))}` }
  const shown = { is_for_all: true, is_default: false }
  await made('saved-views', { ...view, ...shown, name: script, kind: 'view' })
  for (const kind of ['series', 'top', 'number', 'table'])
    await made('saved-views', { ...view, ...shown, name: script, kind, dashboard: script })
  const rule = await made('alert-rules', {
    name: script,
    severity: 'P1',
    owner: script,
    note: script,
    runbook: `https://wiki.example.com/"${script}`,
    q: JSON.stringify(script),
    kind: { type: 'threshold', window: '1m', op: '>', fire: 1_000 },
  })
  const url = `http://127.0.0.1:9/${script.replaceAll(' ', '/')}`
  await made('notification-channels', { name: script, target: { type: 'webhook', url } })
  await made('silences', { matchers, reason: script, ends_at: 'now+1h' })
  const often = { time_zone: 'UTC', days: ['mon'], from: '01:00', to: '02:00' }
  await made('maintenance-windows', { name: script, reason: script, matchers, ...often })
  const incident = await made('incidents', { title: script, severity: 'P1', description: script })
  await made(`incidents/${incident.id}/notes`, { text: script })
  await made('applications', { name: script })
  await made('ingest-keys', { name: script })
  await made('api-tokens', { name: script })
  await collect(service, 'POST /ingest', {
    token: INGEST_KEY,
    body: JSON.stringify({ source: 'legacy', timestamp: script, message: script }),
  })
  const { items } = (await service.call('GET /api/logs?limit=1&severity=ERROR')).body
  const [{ id, template_id: template }] = items
  const priority = { priority: 'P1', reason: script }
  await service.call(`PATCH /api/logs/${id}/priority`, { json: priority })
  await service.call(`PUT /api/logs/meta/templates/${template}/note`, { json: { text: script } })
  await settled(service)
  return [
    'explore',
    `explore?id=${id}`,
    'explore?as=table',
    'explore?as=templates',
    `explore?q=${encodeURIComponent(`"${script}" (`)}`,
    `events/${id}`,
    'templates',
    `templates/${template}`,
    'overview',
    `overview/${encodeURIComponent(script)}`,
    'alerts',
    'alerts/rules',
    `alerts/rules/${rule.id}`,
    'alerts/quiet',
    'alerts/channels',
    'incidents',
    `incidents/${incident.id}`,
    'sources',
    'sources/dead-letters',
    'sources/keys',
    'admin/users',
    'admin/tokens',
    'admin/audit',
  ]
}

t.test(
  'scripts in what is shown are text',
  { skip: isMissing ? 'no browser' : false },
  async (t) => {
    const service = await startLiveService(t)
    const made = await service.call('POST /api/users', { json: { email, password, role: 'admin' } })
    t.equal(made.status, 201, made.text)
    await service.ingest(
      SCRIPTS.map((text) => ({
        source: `s ${text}`.replaceAll(',', ''),
        severity: 'ERROR',
        host: text,
        message: `m ${text}`,
        tags: { [text]: text },
        environment: text.slice(0, 60),
      })),
    )
    for (const text of SCRIPTS) {
      await service.call('POST /api/alerts', { json: { title: text, severity: 'P1' } })
      const replace = (_: string, given: unknown): unknown =>
        typeof given === 'string' ? text : given
      const hostile = {
        ...JSON.parse(JSON.stringify(webhook('issue'), replace)),
        object_kind: 'issue',
      }
      const body = JSON.stringify(hostile)
      const signature = createHmac('sha256', WEBHOOK_SECRET).update(body).digest('hex')
      const headers = { 'content-type': 'application/json', 'x-scm-token': signature }
      await collect(service, 'POST /webhooks/scm', { body, headers })
    }
    await settled(service)

    const browser = await openBrowser(t)
    const page = await browser.newPage()
    const dialogs: string[] = []
    const hosts = new Set<string>()
    page.on('dialog', (dialog) => {
      dialogs.push(dialog.message())
      void dialog.dismiss()
    })
    page.on('request', (request) => hosts.add(new URL(request.url()).host))
    const isClean = async (what: string, on: Page = page): Promise<void> => {
      t.equal(await on.evaluate('document.querySelectorAll("[data-evil]").length'), 0, what)
      t.equal(await on.evaluate('typeof evil'), 'undefined', what)
    }

    await page.goto(`${service.api}/docs#${encodeURIComponent(SCRIPTS[0] ?? '')}`)
    await page.waitForSelector('#operations-tag-logs')
    // A browser accepts fewer e-mail addresses than the service does.
    await page.evaluate('document.querySelector("input[name=email]").type = "text"')
    await page.fill('input[name=email]', email)
    await page.fill('input[name=password]', password)
    await page.click('#log-in button')
    await page.waitForSelector('#who:has-text("(admin)")')
    t.ok((await page.textContent('#who'))?.includes(email), 'the e-mail is shown as it is')
    await isClean('the logged-in user')
    await page.click('#live button:has-text("Connect")')
    await page.waitForSelector('#live .log:has-text("unique_events")')
    await isClean('the live channel')
    const shown = ['logs-listEvents', 'sources-listSources', 'alerts-listAlerts', 'logs-topTemplates', 'analytics-topSources', 'kpis-kpis', 'users-listUsers', 'monitoring-listAudit'] // prettier-ignore
    for (const id of shown) {
      const operation = `#operations-${id}`
      if (!(await page.isVisible(operation)))
        await page.click(`#operations-tag-${id.split('-')[0]}`)
      await page.click(`${operation} .opblock-summary-control`)
      await page.click(`${operation} .execute`)
      const reply = `${operation} .live-responses-table`
      await page.waitForSelector(`${reply}:has-text("200")`)
      const text = (await page.textContent(reply)) ?? ''
      t.ok(text.includes('data-evil'), `${id} shows it`)
      await isClean(id)
    }
    await page.fill('.operation-filter-input', SCRIPTS[0] ?? '')
    await isClean('the filter')

    const own = new URL(service.api).host
    t.same([...hosts], [own], 'nothing was asked of others')

    t.comment('the headers keep even an injected script from running')
    const blocked = await page.evaluate(`new Promise((resolve) => {
    const seen = []
    addEventListener('securitypolicyviolation', (event) => seen.push(event.effectiveDirective))
    const script = document.createElement('script')
    script.textContent = 'evil = 1'
    const foreign = document.createElement('script')
    foreign.src = 'https://evil.example/x.js'
    const image = document.createElement('img')
    image.setAttribute('onerror', 'evil = 1')
    image.src = 'data:,'
    const base = document.createElement('base')
    base.href = 'https://evil.example/'
    document.body.append(script, foreign, image, base)
    setTimeout(() => resolve(seen.map(String).sort()), 500)
  })`)
    t.same(blocked, ['base-uri', 'script-src-attr', 'script-src-elem', 'script-src-elem'])
    t.equal(await page.evaluate('typeof evil'), 'undefined')

    t.comment('replies opened as pages are no pages')
    for (const path of [
      '/api/logs?limit=50',
      '/api/alerts',
      '/metrics',
      '/openapi.json',
      `/${encodeURIComponent(SCRIPTS[0] ?? '')}`,
      `/api/logs?cursor=${encodeURIComponent(SCRIPTS[0] ?? '')}`,
      `/api/sources/${encodeURIComponent(SCRIPTS[0] ?? '')}`,
    ]) {
      const other = await browser.newPage()
      const reply = await other.goto(service.api + path)
      const headers = reply?.headers() ?? {}
      t.match(headers['content-type'], /^(?:application\/json|text\/plain)/, path)
      t.equal(headers['x-content-type-options'], 'nosniff', path)
      t.match(headers['content-security-policy'], /default-src 'none'/, path)
      await isClean(path, other)
      await other.close()
    }

    t.comment('every screen of the page')
    hosts.clear()
    for (const path of await writeEverywhere(service)) {
      await page.goto(`${service.api}/${path}`, { waitUntil: 'networkidle' })
      await page.waitForSelector('main:has-text("data-evil")')
      await isClean(path)
      const links = await page.evaluate<string[]>(LINKS)
      t.same(
        links.filter((link) => !link.startsWith(service.api) && !/^(?:blob|data):/.test(link)),
        [],
        `${path} leads nowhere else`,
      )
    }
    t.same([...hosts], [own], 'nothing was asked of others')

    t.comment('no page has it in a frame')
    await page.goto('about:blank')
    await page.setContent(`<iframe src="${service.api}/docs"></iframe>`)
    const frame = page.frames()[1]
    await frame?.waitForLoadState().catch(() => undefined)
    t.equal(await frame?.$('#operations-tag-logs').catch(() => null), null)

    t.same(dialogs, [])
  },
)
