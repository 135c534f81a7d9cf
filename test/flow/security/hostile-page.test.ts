/** Scripts, styles and addresses in everything that others may name, on every screen of the page. */
import t from 'tap'
import { collect, settled, startLiveService, type LiveService } from '../../support/live-service.js'
import { isMissing, logIn, openBrowser, watch } from '../../support/page.js'
import { INGEST_KEY } from '../../support/service.js'

const ATTACKS: readonly string[] = [
  '<img src=x onerror=alert(1)><svg onload=alert(1)>',
  '"><script>alert(1)</script><iframe srcdoc="<script>alert(1)</script>">',
  `' onmouseover='alert(1)' autofocus onfocus='alert(1)' x='`,
  'javascript:alert(1)//https://evil.example/',
  '${alert(1)}{{constructor.constructor("alert(1)")()}}',
  '</style><style>@import "//evil.example/x";*{background:url(//evil.example/y)}',
  'url(//evil.example/z);position:fixed;inset:0;--columns:1px',
  '\u202egnp.exe\u2066 \u0000\u001b]8;;https://evil.example\u0007link\u001b]8;;\u0007',
  '__proto__',
]
const attack = (n: number): string => ATTACKS[n % ATTACKS.length] ?? ''
/** A text that the service takes as a name: without control characters. */
const name = (n: number): string => `${n} ${attack(n).replaceAll(/\p{Cc}/gu, '')}`.slice(0, 110)

/** Makes a record for each attack. @returns the ids of those that were taken, of which there has to be one at least */
async function make(service: LiveService, path: string, body: (n: number) => object) {
  const all = ATTACKS.map((_, n) => service.call(`POST /api/${path}`, { json: body(n) }))
  const ids = (await Promise.all(all)).flatMap(({ status, body: made }) =>
    status === 201 ? [String(made.id)] : [],
  )
  t.ok(ids.length > 0, `${path}: ${ids.length} of ${ATTACKS.length}`)
  return ids
}

async function fillEvents(service: LiveService): Promise<void> {
  const trace = '0af7651916cd43dd8448eb211c80319c'
  const events = ATTACKS.flatMap((text, n) =>
    ['ERROR', 'CRITICAL'].map((severity) => ({
      source: name(n),
      host: text,
      environment: text.slice(0, 60),
      severity,
      message: `${text} ${severity} ${'long '.repeat(n * 400)}`,
      trace_id: n === 0 ? trace : text.slice(0, 60),
      span_id: `0011223344556${n}0${n}`.slice(0, 16),
      tags: { [text]: text, url: attack(3), link: text, style: text, onclick: text, class: text },
    })),
  )
  for (const event of events) await service.ingest([event])
  const dead = ATTACKS.map((text) => JSON.stringify({ source: name(1), severity: text, at: text }))
  const body = [...dead, ...ATTACKS].join('\n')
  await collect(service, 'POST /ingest', { token: INGEST_KEY, body })
  await settled(service)
}

async function fillRecords(service: LiveService) {
  await make(service, 'applications', (n) => ({
    name: name(n),
    environment: attack(n).slice(0, 60),
    hosts: [attack(n).slice(0, 200)],
  }))
  await make(service, 'ingest-keys', (n) => ({ name: name(n) }))
  await make(service, 'api-tokens', (n) => ({ name: name(n) }))
  await make(service, 'users', (n) => ({
    email: `"${attack(n).replaceAll(/[\s@\p{Cc}]/gu, '')}"`.slice(0, 60) + '@evil.example',
    password: 'long enough for it',
  }))
  const { items } = (await service.call('GET /api/logs?limit=20')).body
  await make(service, 'alerts', (n) => ({
    title: name(n),
    severity: 'P1',
    event_ids: items.map(({ id }: { readonly id: number }) => id),
  }))
  const incidents = await make(service, 'incidents', (n) => ({
    title: name(n),
    description: attack(n),
    severity: 'P1',
    event_ids: items.map(({ id }: { readonly id: number }) => id),
  }))
  for (const [n, id] of incidents.entries())
    await service.call(`POST /api/incidents/${id}/notes`, { json: { text: attack(n) } })
  await make(service, 'tasks', (n) => ({
    title: name(n),
    description: attack(n),
    incident_id: incidents[0],
  }))
  await make(service, 'notification-channels', (n) => ({
    name: name(n),
    target: { type: 'webhook', url: `https://evil.example/${encodeURIComponent(attack(n))}` },
  }))
  const rules = await make(service, 'alert-rules', (n) => ({
    name: name(n),
    severity: 'P1',
    owner: attack(n),
    note: attack(n),
    runbook: `https://evil.example/${encodeURIComponent(attack(n))}`,
    kind: { type: 'threshold', window: '5m', op: '>=', fire: 1 },
    group_by: ['source', 'host'],
  }))
  const matchers = (n: number) => [{ field: 'source', value: attack(n) }]
  await make(service, 'silences', (n) => ({
    reason: attack(n),
    matchers: matchers(n),
    ends_at: 'now+1h',
  }))
  const day = { time_zone: 'UTC', days: ['mon'], from: '00:00', to: '23:59' }
  await make(service, 'maintenance-windows', (n) => ({
    name: name(n),
    reason: attack(n),
    matchers: matchers(n),
    ...day,
  }))
  await make(service, 'saved-views', (n) => ({
    name: name(n),
    screen: 'explore',
    kind: n % 2 === 0 ? 'view' : 'table',
    params: `q=${encodeURIComponent(`"${attack(n)}"`)}&columns=${encodeURIComponent(attack(n))}&cols=constructor`,
    ...(n % 2 === 0 ? {} : { dashboard: attack(n).slice(0, 100) }),
    is_for_all: true,
    is_default: false,
  }))
  for (const { template_id: id } of items)
    await service.call(`PUT /api/logs/meta/templates/${id}/note`, { json: { text: attack(0) } })
  return { items, incidents, rules }
}

/** Opens what a screen hides behind its controls, but for what ends the session or changes records. */
const OPEN_ALL = `(async () => {
  const avoided = /log out|delete|end|remove|revoke|clear|export|download|save|create|make|replay|mark|test/i
  const controls = [...document.querySelectorAll('button, summary, [role=gridcell], [role=tab]')]
  for (const one of controls.slice(0, 60)) {
    if (!one.isConnected || avoided.test(one.textContent + (one.title ?? '') + one.ariaLabel)) continue
    for (const type of ['mouseover', 'focusin']) one.dispatchEvent(new MouseEvent(type, { bubbles: true }))
    one.click()
    await new Promise((done) => setTimeout(done, 25))
    ;(document.activeElement ?? document.body).dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }))
  }
})()`

/** Addresses of the document that lead elsewhere, where they are no download. */
const FOREIGN = `[...document.querySelectorAll('[href],[src],[action],[style*="url("],iframe,object,embed,base,script:not([src])')]
  .filter((one) => !one.hasAttribute('download'))
  .map((one) => one.getAttribute('href') ?? one.getAttribute('src') ?? one.outerHTML)
  .filter((to) => !/^(?:\\/(?!\\/|\\\\)|#|https:\\/\\/evil\\.example\\/(?!x|y|z))/.test(to))`

t.test(
  'nothing that others name runs on any screen',
  { skip: isMissing && 'no browser' },
  async (t) => {
    const service = await startLiveService(t)
    await fillEvents(service)
    const { items, incidents, rules } = await fillRecords(service)
    await service.call('POST /api/ai-insights/snapshot/refresh')
    const browser = await openBrowser(t)
    const page = await browser.newPage()
    const seen = watch(page)
    const ran: string[] = []
    page.on('dialog', (dialog) => {
      ran.push(dialog.message())
      void dialog.dismiss().catch(() => undefined)
    })
    page.on('popup', (popup) => ran.push(popup.url()))
    page.on('console', (message) => {
      if (/Content Security Policy/i.test(message.text())) ran.push(message.text())
    })
    await logIn(page, service)
    const [event] = items
    const paths = [
      'explore?from=now-1h',
      `explore?from=now-1h&columns=${encodeURIComponent(ATTACKS.join(','))}`,
      `explore?from=now-1h&q=${encodeURIComponent(`"${attack(0)}"`)}`,
      'explore?from=now-1h&as=templates',
      'explore?from=now-1h&as=table',
      `explore?from=now-1h&id=${event.id}`,
      `events/${event.id}`,
      'live',
      'templates',
      `templates/${event.template_id}`,
      'overview',
      ...ATTACKS.slice(1, 4).map((text) => `overview/${encodeURIComponent(text)}`),
      'alerts',
      'alerts?show=firing',
      'alerts/rules',
      `alerts/rules/${rules[0]}`,
      'alerts/rules/new',
      'alerts/channels',
      'alerts/quiet',
      'alerts/history',
      'incidents',
      ...incidents.slice(0, 3).map((id) => `incidents/${id}`),
      'insights',
      'sources',
      'sources/send',
      'sources/dead-letters',
      'sources/keys',
      'admin',
      ...['storage', 'sessions', 'users', 'tokens', 'audit'].map((tab) => `admin/${tab}`),
      `?login_error=${encodeURIComponent(attack(0))}`,
    ]
    for (const path of paths) {
      await page.goto(`${service.api}/${path}`)
      await page.waitForSelector('.shell')
      await page.waitForLoadState('networkidle')
      await page.evaluate(OPEN_ALL)
      t.same(ran.splice(0), [], path)
      const foreign = await page.evaluate(FOREIGN)
      t.same(foreign, [], `addresses on ${path}`)
    }
    t.same([...seen.hosts], [new URL(service.api).host], 'nobody else is asked')
    // What a control asks with nothing entered may be refused.
    const faults = seen.faults.filter((fault) => !fault.startsWith('Failed to load resource'))
    t.same(faults, [])
  },
)
