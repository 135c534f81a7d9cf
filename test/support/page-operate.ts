import { TOTP } from 'otpauth'
import type { Page, Request } from 'playwright-core'
import type { Test } from 'tap'

import { HOUR_MS } from '../../src/model/time.js'
import { eventually, settled, type LiveService } from './live-service.js'
import { axe, held, param, text } from './page.js'

/** What operators do beside searching: views, rules, alerts, incidents, insights, administration. */
export async function operate(t: Test, page: Page, service: LiveService): Promise<void> {
  await views(t, page, service)
  await alerts(t, page, service)
  await incidents(t, page, service)
  await insights(t, page, service)
  await administration(t, page, service)
  await unanswered(t, page, service)
}

/** Each part of a screen says that its question had no answer, and asks it again. */
async function unanswered(t: Test, page: Page, service: LiveService): Promise<void> {
  t.comment('questions without an answer')
  // Its console tells of each request that fails.
  const tab = await page.context().newPage()
  let failing = /\/api\/(?!auth\/me)/
  await tab.route(
    ({ pathname }) => failing.test(pathname),
    (route) => route.abort(),
  )
  const paths =
    'overview sources sources/dead-letters sources/keys incidents insights alerts alerts/rules alerts/rules/new ' +
    'alerts/quiet alerts/channels explore explore?as=templates explore?id=1 templates templates/0123456789abcdef ' +
    'admin admin/storage admin/sessions admin/users admin/tokens admin/audit'
  for (const path of paths.split(' ')) {
    await tab.goto(`${service.api}/${path}`)
    await tab.waitForSelector('main button:has-text("Try again")')
    await tab.waitForSelector('.waiting', { state: 'detached' })
    await tab.waitForSelector('.freshness.bad:has-text("no answer")')
  }
  await tab.setViewportSize({ width: 375, height: 720 })
  for (const path of ['explore', 'incidents']) {
    await tab.goto(`${service.api}/${path}`)
    await tab.waitForSelector('.freshness.bad')
    const bar = await tab.locator('.top-bar').boundingBox()
    t.ok((bar?.height ?? 99) < 50, 'on a phone what is wrong takes no second line')
  }
  await tab.setViewportSize({ width: 1280, height: 800 })
  await tab.goto(`${service.api}/overview`)
  const panel = '.card:has(h2:text-is("Sources, 24 h"))'
  await tab.waitForSelector(`${panel} .problem`)
  t.same(await axe(tab), [])
  failing = /\/api\/(?:logs\/stats|kpis)$/
  await tab.click(`${panel} >> text=Try again`)
  await tab.waitForSelector(`${panel} li:has-text("gateway")`)
  await tab.goto(`${service.api}/sources`)
  await tab.waitForSelector('tr:has-text("gateway") .amount:text-is("–")')
  t.pass('what is not known is not 0')
  failing = /no more/
  await tab.click('main >> text=Try again')
  await tab.waitForSelector('tr:has-text("gateway"):has-text("0 %")')
  failing = /\/logs\/histogram$/
  await tab.goto(`${service.api}/explore?from=now-2h`)
  await tab.waitForSelector('.events .row')
  await tab.waitForSelector('.chart-room [role=alert]:has-text("No answer")')
  failing = /no more/
  await tab.click('.chart-room >> text=Try again')
  await tab.waitForSelector('.chart-room .histogram')
  t.equal(await tab.locator('main [role=alert]').count(), 0)
  await tab.close()
}

async function incidents(t: Test, page: Page, service: LiveService): Promise<void> {
  t.comment('an incident from a selection, by keyboard')
  for (const what of ['template', 'incident']) {
    await page.goto(`${service.api}/${what}s/nosuch`)
    await page.waitForSelector(`.problem:has-text("There is no such ${what}.")`)
  }
  await page.goto(`${service.api}/incidents`)
  await page.waitForSelector('.nothing:has-text("No incident")')
  t.same(await axe(page), [])
  const chart = await held(page, /\/logs\/histogram\?.*buckets=120/)
  await page.goto(`${service.api}/explore?from=now-2h&q=severity:error+source:payments`)
  await page.waitForSelector('.events .row.error')
  await page.locator('.events').focus()
  await page.keyboard.press('j')
  await page.keyboard.press('i')
  await page.waitForSelector('dialog.modal[open] input[name=title]')
  t.match(await page.inputValue('input[name=title]'), /connection pool exhausted/)
  t.same(await axe(page), [])
  await page.fill('input[name=title]', 'The pool is dry')
  await page.click('dialog.modal [aria-pressed=false] >> nth=0')
  await page.waitForSelector('dialog.modal [aria-pressed=true]:focus')
  t.equal(await page.inputValue('input[name=title]'), 'The pool is dry', 'what is typed stays')
  await page.focus('input[name=title]')
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/incidents\/[0-9a-f-]{36}$/)
  const id = new URL(page.url()).pathname.split('/').at(-1)
  await page.waitForSelector('.evidence code:has-text("severity:error source:payments")')
  t.same(await axe(page), [])
  const stored = (await service.call(`GET /api/incidents/${id}`)).body
  t.match(stored, { status: 'open', source: 'payments', evidence: [{ count: Number }] })
  t.ok(stored.evidence[0].count > 0, 'it is counted, also before the chart is there')
  await chart.release()
  t.equal(stored.event_ids.length, 1)
  const [event] = stored.event_ids
  await page.waitForSelector(
    `.evidence a[href="/events/${event}"] code:has-text("connection pool exhausted")`,
  )
  t.equal(await page.title(), 'The pool is dry · Incident')

  t.comment('it is worked on')
  await page.click('text=Acknowledge')
  await page.waitForSelector('.state.acknowledged')
  await page.click('text=Take it')
  await page.fill('.note-form textarea', 'the pool is dry\n<b data-evil>')
  await page.click('text=Add note')
  await page.waitForSelector('.timeline p:has-text("the pool is dry")')
  t.equal(await page.locator('[data-evil]').count(), 0)
  const tab = await page.context().newPage()
  await tab.goto(page.url())
  await tab.click('.link:text-is("Edit")')
  await tab.waitForSelector('textarea[name=description]:focus')
  await tab.keyboard.type('too few connections')
  await tab.route(`**/incidents/${id}`, (route) => route.abort())
  await tab.click('text=Save')
  await tab.waitForSelector('.notice:has([href$="#circle-alert"])')
  t.equal(await tab.inputValue('textarea[name=description]'), 'too few connections')
  await tab.unroute(`**/incidents/${id}`)
  await tab.click('text=Save')
  await tab.waitForSelector('.text:has-text("too few connections")')
  await tab.waitForSelector('.link:text-is("Edit"):focus')
  await tab.close()
  await page.click('.evidence a')
  await page.waitForSelector('.events .row.error')
  t.equal(param(page, 'q'), 'severity:error source:payments')
  t.match(param(page, 'from'), /^2/, 'the span is frozen')
  await page.goto(`${service.api}/incidents`)
  await page.waitForSelector('.incident-card:has-text("you")')
  t.same(await axe(page), [])

  t.comment('a template is told by its text')
  const [template] = (await service.call('GET /api/logs/meta/templates?limit=1')).body
  const title = `Too much (template ${template.template_id}): 5`
  await service.call('POST /api/incidents', { json: { title, severity: 'P3' } })
  await page.goto(`${service.api}/incidents`)
  await page.click('.incident-card:has-text("Too much")')
  await eventually(
    () => page.title(),
    (shown) => shown.startsWith('Too much (template “'),
  )
  await page.goBack()
  const told = `Too much (template “${template.template.replaceAll('<*>', '∗')}”): 5`
  await page.waitForSelector(`.incident-card strong:text-is(${JSON.stringify(told)})`)
  t.pass(told)
}

/** A form that is sent twice at once is taken once. */
async function isSentOnce(t: Test, page: Page, path: RegExp, row: string): Promise<void> {
  const answer = await held(page, path)
  let sent = 0
  const count = (request: Request): void => {
    if (request.method() === 'POST' && path.test(request.url())) sent++
  }
  page.on('request', count)
  await page.focus('dialog input[name=name]')
  await page.keyboard.press('Enter')
  await page.keyboard.press('Enter')
  await answer.release()
  await page.waitForSelector(row)
  page.off('request', count)
  t.equal(sent, 1, 'it is sent once')
}

async function insights(t: Test, page: Page, service: LiveService): Promise<void> {
  t.comment('Insights')
  await service.call('POST /api/ai-insights/snapshot/refresh')
  await page.goto(`${service.api}/insights`)
  await page.waitForSelector('.learning')
  t.equal(await page.locator('.note:has-text("Not analysed yet")').count(), 2)
  t.same(await axe(page), [])
  await page.click('[aria-label="A day earlier"]')
  await page.waitForURL(/at=2/)
  await page.waitForSelector('text=No analysis of this time yet')

  t.comment('what is usual, and what is not')
  const HOURS = 24 * 8
  const startMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - HOURS * HOUR_MS
  const atMs = (hour: number, i: number): number => startMs + (hour + i / 90) * HOUR_MS
  const tide = Array.from({ length: HOURS }, (_, hour) =>
    Array.from({ length: hour === HOURS - 5 ? 90 : 6 }, (_each, i) => ({
      source: 'tide',
      message: 'high water',
      timestamp: new Date(atMs(hour, i)).toISOString(),
    })),
  )
  await service.ingest(tide.flat())
  await settled(service)
  await service.call('POST /api/ai-insights/snapshot/refresh')
  await page.goto(`${service.api}/explore?from=now-24h&q=source:tide`)
  await page.waitForSelector('.usual a[title*="spike of tide: 90"]')
  t.match(await page.getAttribute('.usual path >> nth=0', 'd'), /^M[\d.]+ [\d.]+H/)
  await page.hover('.chart .u-over', { position: { x: 300, y: 60 } })
  await page.waitForSelector('.tip .sum:has-text("usual")')
  t.same(await axe(page), [])
  await page.goto(`${service.api}/insights`)
  const days = page.locator('.anomaly-lines .days span')
  await days.nth(3).waitFor()
  const at = startMs + (HOURS - 5) * HOUR_MS
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions()
  const named = { day: '2-digit', month: 'short', timeZone } as const
  const today = new Intl.DateTimeFormat('en-GB', named).format(at)
  const [label, bar] = await Promise.all([
    days.filter({ hasText: today }).boundingBox(),
    page.locator('.anomaly-lines li:has-text("tide") .lane i').first().boundingBox(),
  ])
  t.ok((bar?.x ?? 0) > (label?.x ?? NaN) - 1, 'what happened on a day is drawn after its beginning')
  await page.goBack()
  await page.focus('.usual a')
  await page.keyboard.press('Enter')
  await page.waitForSelector(
    '.insights .contributions, .insights .causes, .insights [aria-current=true]',
  )
}

async function administration(t: Test, page: Page, service: LiveService): Promise<void> {
  t.comment('Admin')
  await page.goto(`${service.api}/admin`)
  await page.waitForSelector('.tile:has-text("ClickHouse")')
  t.same(await axe(page), [])
  await page.click('.tabs >> text=Storage')
  await page.waitForSelector('tr:has-text("Events"):has-text("90 days")')
  t.same(await axe(page), [])
  await page.click('.tabs >> text=Users')
  await page.click('text=Add a user')
  await page.fill('dialog input[name=email]', 'ann@example.com')
  await page.fill('dialog input[name=password]', 'short')
  await page.keyboard.press('Enter')
  await page.waitForSelector('dialog .problem')
  await page.fill('dialog input[name=password]', 'a rather long first password 42')
  await page.keyboard.press('Enter')
  await page.waitForSelector('tr:has-text("ann@example.com"):has-text("temporary")')
  t.same(await axe(page), [])
  const roleOf = async () =>
    (await service.call('GET /api/users')).body.items.find(
      ({ email }: { email: string }) => email === 'ann@example.com',
    ).role
  await page.focus('select[aria-label="Role of ann@example.com"]')
  await page.keyboard.press('ArrowDown')
  await page.waitForSelector('.danger:has-text("Make manager")')
  t.equal(await roleOf(), 'viewer', 'a key press gives no role')
  await page.click('text=Make manager')
  await page.waitForSelector('.notice:has-text("ann@example.com is manager")')
  t.equal(await roleOf(), 'manager')
  await newPassword(t, page, service)
  await page.focus('tr:has-text("ann@example.com") >> text=Delete …')
  await page.keyboard.press('Enter')
  await page.waitForSelector('button:text-is("Keep"):focus')
  await page.keyboard.press('Shift+Tab')
  await page.waitForSelector('button:text-is("Delete the user"):focus')
  await page.keyboard.press('Enter')
  await page.waitForSelector('tr:has-text("ann@example.com")', { state: 'detached' })
  await page.click('.tabs >> text=Audit')
  await page.click('tr:has-text("deleteUser") .link >> nth=1')
  await page.waitForURL(/action=deleteUser/)
  t.same(await axe(page), [])
  await page.click('.tabs >> text=Your sessions')
  await page.waitForSelector('tr:has-text("this one")')
  t.match(await text(page, 'tr:has-text("this one")'), /Chrom/)
  t.same(await axe(page), [])
}

/** A new user has to choose a password, and sees how strong it is. */
async function newPassword(t: Test, page: Page, service: LiveService): Promise<void> {
  const context = await page.context().browser()?.newContext()
  const other = await context?.newPage()
  if (context === undefined || other === undefined) throw new Error('bug: no browser')
  await other.goto(`${service.api}/`)
  await other.fill('input[name=email]', 'ann@example.com')
  await other.fill('input[name=password]', 'a rather long first password 42')
  await other.keyboard.press('Enter')
  await other.waitForSelector('text=A new password')
  const strength = async (password: string): Promise<number> => {
    await other.fill('input[name=password]', password)
    return Number(await other.getAttribute('meter', 'value'))
  }
  const [weak, strong] = [await strength('aaaabbbbcccc1234'), await strength('tulip 93 ferry moss')]
  t.ok(weak < 20 && strong > 60, `${weak} and ${strong} bits`)
  t.equal(await other.getAttribute('input[name=password]', 'type'), 'password')
  await other.click('text=Show what I type')
  t.equal(await other.getAttribute('input[name=password]', 'type'), 'text')
  t.same(await axe(other), [])
  await other.fill('input[name=current]', 'a rather long first password 42')
  await other.keyboard.press('Enter')
  await other.waitForSelector('.shell')
  await ownFactor(t, other, service)
  await context.close()
}

/** A second factor is turned on by keyboard, and off with a recovery code. */
async function ownFactor(t: Test, page: Page, service: LiveService): Promise<void> {
  const password = 'tulip 93 ferry moss'
  await page.goto(`${service.api}/admin/sessions`)
  await page.focus('text=Turn it on …')
  await page.keyboard.press('Enter')
  await page.waitForSelector('input[name=password]:focus')
  await page.keyboard.type(password)
  await page.keyboard.press('Enter')
  await page.waitForSelector('input[name=code]:focus')
  t.same(await axe(page), [])
  t.ok(await page.locator('[aria-label="QR code of the key"] path').getAttribute('d'))
  const secret = (await text(page, '.made-key code')).replaceAll(' ', '')
  await page.keyboard.type(new TOTP({ secret }).generate())
  await page.keyboard.press('Enter')
  await page.waitForSelector('.codes li >> nth=9')
  t.same(await axe(page), [])
  const recovery = await text(page, '.codes li >> nth=0')
  await page.keyboard.press('Enter')
  await page.waitForSelector('.own-factor:has-text("10 recovery codes left")')
  await page.click('text=Turn it off …')
  await page.fill('input[name=password]', password)
  await page.fill('input[name=code]', recovery)
  await page.keyboard.press('Enter')
  await page.waitForSelector('.own-factor:has-text("with the password alone")')
}

async function views(t: Test, page: Page, service: LiveService): Promise<void> {
  t.comment('a view is saved, and the page opens with it')
  await page.goto(`${service.api}/explore?from=now-2h&q=severity:error+source:gateway`)
  await page.waitForSelector('.events .row.error')
  await page.click('[aria-label="Saved views and history"]')
  await page.click('text=Save this view')
  t.equal(await page.inputValue('.save-view input[name=name]'), 'severity:error source:gateway')
  await page.fill('.save-view input[name=name]', 'Gateway <b data-evil>')
  await page.check('.save-view input[name=default]')
  await page.click('.save-view .primary')
  await page.waitForSelector('.save-view', { state: 'detached' })
  await page.click('[aria-label="Saved views and history"]')
  await page.waitForSelector('.saved:has-text("Gateway <b data-evil>"):has-text("default")')
  t.same(await axe(page), [])
  await page.goto(service.api)
  await page.waitForURL(/q=severity:error\+source:gateway/)
  await page.waitForSelector('.events .row.error')

  t.comment('the trace of an event')
  await page.locator('.events').focus()
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await page.click('.detail >> text=Trace')
  await page.waitForSelector('.trace [aria-current=true]:has-text("gateway")')
  t.ok((await page.locator('.trace li').count()) > 2)
  t.same(await axe(page), [])
  await page.keyboard.press('Escape')
  await page.click('[aria-label="Saved views and history"]')
  await page.click('[aria-label^="Delete Gateway"]')
  await page.waitForSelector('.saved', { state: 'detached' })

  t.comment('a brush with Shift asks why')
  await page.goto(`${service.api}/explore?from=now-2h&q=severity:error`)
  await page.waitForSelector('.chart .u-over')
  await page.waitForSelector(`.chart-room[aria-busy=false]`)
  const box = await page.locator('.chart .u-over').boundingBox()
  if (box === null) throw new Error('no chart')
  await page.keyboard.down('Shift')
  await page.mouse.move(box.x + box.width * 0.7, box.y + 40)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width * 0.9, box.y + 40, { steps: 4 })
  await page.mouse.up()
  await page.keyboard.up('Shift')
  await page.waitForURL(/why=2/)
  await page.waitForSelector('.causes a:has-text("connection pool exhausted"):has(.bar.error)')
  t.same(await axe(page), [])
  const shaded = () => page.evaluate<number>('document.querySelector(".u-select").clientWidth')
  const width = await shaded()
  t.ok(width > 100, 'what is explained is shaded')
  await page.reload()
  await page.waitForSelector('.causes a')
  t.ok(Math.abs((await shaded()) - width) < 3, 'by the link, too')
  await page.keyboard.press('Escape')
  await page.waitForSelector('.why-panel', { state: 'detached' })
  await eventually(shaded, (left) => left === 0)
}

async function alerts(t: Test, page: Page, service: LiveService): Promise<void> {
  t.comment('a rule from a search, which fires')
  const webhook = { type: 'webhook', url: 'http://127.0.0.1:9/' }
  await service.call('POST /api/notification-channels', {
    json: { name: 'night watch', enabled: true, target: webhook },
  })
  await page.goto(`${service.api}/explore?from=now-2h&q=source:rules`)
  await page.click('[aria-label="Copy, alert"]')
  await page.click('text=Alert on this')
  await page.waitForURL(/alerts\/rules\/new/)
  await page.waitForSelector('.rule-chart svg')
  await page.fill('.form input >> nth=0', 'Too much of it')
  await page.fill('input[type=number]', '2')
  await page.check('.channels label:has-text("night watch") input')
  t.same(await axe(page), [])
  await page.click('text=Save')
  await page.waitForURL(/alerts\/rules\/[0-9a-f-]{36}/)
  await page.waitForSelector('text=It has not fired yet')
  const rule = new URL(page.url()).pathname
  await service.ingest(
    Array.from({ length: 5 }, (_, i) => ({ source: 'rules', message: `broken ${i}` })),
  )
  await page.goto(`${service.api}/alerts?show=firing`)
  await page.waitForSelector('.alert-list li:has-text("Too much of it"):has-text("firing")', {
    timeout: 45_000,
  })
  t.same(await axe(page), [])
  await page.click('text=Acknowledge')
  await page.waitForSelector('.alert-list li:has-text("you take care")')
  await page.waitForSelector('a.freshness[href*="unread"]', { state: 'detached' })
  t.equal(await page.locator('text=/Mark \\d+ as read/').count(), 0, 'it is read')
  t.match(
    await page.getAttribute('.alert-list a:text-is("Events")', 'href'),
    /^\/explore\?q=source%3Arules&from=2/,
  )
  await page.click('.alert-list >> text=Silence')
  await page.waitForSelector('dialog p:has-text("Matches 1 alert that fires now")')
  t.same(await axe(page), [])
  await page.fill('dialog input[name=reason]', 'it is known')
  await page.click('text=Silence them')
  const silence = 'tr:has-text("rule=Too much of it"):has-text("you"):has-text("active")'
  await page.waitForSelector(`${silence}:has-text("it is known")`)
  t.same(await axe(page), [])
  const until = async () =>
    Date.parse((await page.getAttribute(`${silence} time >> nth=1`, 'datetime')) ?? '')
  const before = await until()
  await page.click(`${silence} >> text=Change`)
  await page.selectOption('dialog select', 'now+1d')
  await page.fill('dialog input[name=reason]', 'it lasts')
  await page.click('dialog .primary')
  await page.waitForSelector(`${silence}:has-text("it lasts")`)
  t.ok((await until()) > before + 20 * HOUR_MS, 'it ends later')
  await page.click(`${silence} >> text=End …`)
  await page.click('text=End it')
  await page.waitForSelector('tr:has-text("it lasts"):has-text("expired")')
  await page.click('text="Silence"')
  await page.waitForSelector('dialog .primary:disabled')
  t.equal(await page.inputValue('dialog input.mono'), '', 'what is silenced has to be said')
  await page.keyboard.press('Escape')
  await page.click('text=Maintenance window')
  await page.fill('dialog input[name=name]', 'Sundays')
  await page.fill('dialog input[name=reason]', 'backups')
  await page.click('dialog .primary')
  await page.click('tr:has-text("Sundays"):has-text("sun") >> text=Change')
  t.equal(await page.inputValue('dialog input[name=reason]'), 'backups', 'it is filled in')
  await page.check('dialog input[name=mon]')
  await page.uncheck('dialog input[name=enabled]')
  await page.click('dialog .primary')
  await page.waitForSelector('tr:has-text("Sundays"):has-text("mon, sun"):has-text("off")')
  await page.goto(service.api + rule)
  await page.click('text=Back-test the last 7 days')
  await page.waitForSelector('text=It would have fired')
  await page.fill('input[type=number]', '3')
  await page.keyboard.press('Tab')
  await page.waitForSelector('text=The rule was changed after this back-test')
  t.equal(await page.locator('text=It would have fired').count(), 0, 'that was another rule')
  await page.selectOption('label:has-text("Counts") select', 'events')
  await page.selectOption('label:has-text("Fires when") select', 'new_template')
  t.equal(await page.inputValue('label:has-text("Severity, at least") select'), 'WARNING')
  await page.fill('label:has-text("Search") input', 'source:nowhere')
  await page.waitForSelector('.rule-chart h2:has-text("at most 0")')
  await page.waitForSelector(
    '.history li:has-text("firing"):has-text("5"):has-text("notice to night watch")',
  )
  t.same(await axe(page), [])

  t.comment('an address of nothing')
  for (const path of ['/alerts/nope', '/admin/nope']) {
    await page.goto(service.api + path)
    await page.waitForSelector('.nothing:has-text("Not found")')
    t.same(await axe(page), [])
    await page.click('.nothing a')
    await page.waitForSelector('.tabs [aria-current=page]')
  }

  t.comment('channels')
  await page.goto(`${service.api}/alerts/channels`)
  await page.click('text=Add a channel')
  await page.fill('dialog input[name=name]', 'chat')
  await page.fill('dialog input[name=url]', 'http://127.0.0.1:9/')
  await page.fill('dialog input[name=secret]', 'a secret of the page')
  t.same(await axe(page), [])
  await isSentOnce(t, page, /notification-channels$/, 'tr:has-text("chat")')
  await page.click('tr:has-text("chat") >> text=Test')
  await page.waitForSelector('tr:has-text("chat") .tested .state:has-text(" in ")')
  await page.click('.tested summary')
  await page.waitForSelector('.tested pre:has-text("Test of the channel")')
  t.same(await axe(page), [])
  t.notMatch(await page.content(), /a secret of the page/)
  await page.click('text=Add a channel')
  await page.waitForSelector('dialog input[name=name]:focus')
  await page.keyboard.type('typed')
  await page.selectOption('dialog select', 'email')
  await page.selectOption('dialog select', 'webhook')
  await page.fill('dialog input[name=url]', 'http://user@127.0.0.1:9/')
  await page.keyboard.press('Enter')
  await page.waitForSelector('dialog .problem')
  t.equal(await page.inputValue('dialog input[name=name]'), 'typed', 'a refusal leaves it')
  t.match(await page.inputValue('dialog input[name=url]'), 'user@')
  await page.keyboard.type('x')
  await page.keyboard.press('Escape')
  await page.waitForSelector('dialog .problem:has-text("Escape once more")')
  t.equal(await page.inputValue('dialog input[name=name]'), 'typed', 'Escape asks first')
  await page.keyboard.press('Escape')
  await page.waitForSelector('dialog.modal', { state: 'detached' })
  await page.click('text=Add a channel')
  await page.selectOption('dialog select', 'alertmanager')
  await page.fill('dialog input[name=name]', 'the pager')
  await page.fill('dialog input[name=url]', 'http://127.0.0.1:9')
  await page.click('dialog button:has-text("Save")')
  await page.click('tr:has-text("the pager") button:has-text("Change")')
  await page.fill('dialog input[name=name]', 'a pager')
  await page.click('dialog button:has-text("Save")')
  await page.waitForSelector(
    'tr:has-text("a pager"):has-text("Alertmanager"):has-text("127.0.0.1:9")',
  )
  t.pass('a channel keeps its kind and its address when its name changes')

  await page.goto(`${service.api}/alerts/rules`)
  await page.click('tr:has-text("Too much of it") [role=switch]')
  await page.waitForSelector('tr:has-text("Too much of it"):has-text("off")')
  t.same(await axe(page), [])

  t.comment('a key for some sources, which has a name')
  await page.goto(`${service.api}/sources/keys`)
  await page.click('text=Make a key')
  await page.fill('dialog input[name=name]', 'the web shop')
  await page.fill('dialog input[name=sources]', 'shop, shop-db')
  await isSentOnce(t, page, /ingest-keys$/, 'tr:has-text("the web shop"):has-text("shop, shop-db")')
  await page.waitForSelector('dialog code:has-text("ik_")')
  await page.waitForSelector('dialog button:has-text("Copy")')
  t.same(await axe(page), [])
  await page.click('dialog >> text=Done')

  t.comment('a file is taken in')
  await page.goto(`${service.api}/sources/send`)
  await page.waitForSelector('.upload')
  const dropped = await page.evaluateHandle(`(() => {
    const data = new DataTransfer()
    data.items.add(new File(['missed'], 'missed.log'))
    return data
  })()`)
  await page.dispatchEvent('.steps', 'dragover', { dataTransfer: dropped })
  await page.waitForSelector('.upload.over')
  await page.dispatchEvent('.steps', 'drop', { dataTransfer: dropped })
  await page.waitForSelector('.upload:not(.over) strong:has-text("missed.log")')
  await page.setInputFiles('.upload input[type=file]', {
    name: 'boot.ndjson',
    mimeType: 'application/x-ndjson',
    buffer: Buffer.from(
      '{"time":"2024-02-29T12:00:00Z","message":"disk is full"}\n{"message":"disk is empty"}\n',
    ),
  })
  t.equal(await page.inputValue('.upload select'), 'json')
  await page.click('.upload button.primary')
  await page.waitForSelector('.upload .received:has-text("2 events")')
  t.same(await axe(page), [])
  await page.click('.upload .received a')
  await page.waitForSelector('text=disk is full')
  t.pass('events of years ago are found by the link')
}
