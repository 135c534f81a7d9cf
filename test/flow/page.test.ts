/** The web page in a real browser, against the real service, with the demo's logs. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import type { Page, Request } from 'playwright-core'
import t, { type Test } from 'tap'

import { fillWithDemo } from '../../src/demo/demo.js'
import {
  collect,
  eventually,
  settled,
  startLiveService,
  type LiveService,
} from '../support/live-service.js'
import {
  axe,
  bytesOf,
  held,
  isMissing,
  logIn,
  openBrowser,
  param,
  SHOTS,
  text,
  watch,
  type Seen,
} from '../support/page.js'
import { operate } from '../support/page-operate.js'
import { ADMIN, INGEST_KEY } from '../support/service.js'

const FIRST_JS_BYTES = 60_000
const FIRST_CSS_BYTES = 12_000

const HOSTILE = [
  '<img data-evil src=x onerror=evil=1>',
  '</div><script data-evil>evil=1</script>',
  '\u202eright to left\u202c',
  '\u001b[31mred\u001b[0m',
  `one long line ${'x'.repeat(200_000)}`,
]

async function isClean(t: Test, page: Page, what: string): Promise<void> {
  t.equal(await page.evaluate('document.querySelectorAll("[data-evil]").length'), 0, what)
  t.equal(await page.evaluate('typeof evil'), 'undefined', what)
}

t.test(
  'files of the page: policy, caching, coding',
  { skip: isMissing && 'no browser' },
  async (t) => {
    const service = await startLiveService(t)
    const headers = { 'accept-encoding': 'gzip, br' }
    for (const path of ['/', '/explore', '/live', '/templates/0123456789abcdef', '/events/1']) {
      const reply = await fetch(service.api + path, { headers })
      t.equal(reply.status, 200, path)
      t.match(reply.headers.get('content-type'), /^text\/html/)
      t.equal(reply.headers.get('cache-control'), 'no-cache')
      t.match(
        reply.headers.get('content-security-policy'),
        /^default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; /,
      )
      t.equal(reply.headers.get('content-encoding'), 'br')
      const html = await reply.text()
      t.notMatch(html, /<script>|style=|https?:/)
      for (const [, file = ''] of html.matchAll(/"(\/ui\/[^"]+)"/g)) {
        const asset = await fetch(service.api + file, { headers: { 'accept-encoding': 'gzip' } })
        t.equal(asset.status, 200, file)
        t.match(asset.headers.get('cache-control'), /immutable/)
        t.equal(asset.headers.get('content-encoding'), 'gzip')
        await asset.arrayBuffer()
      }
    }
    t.equal((await fetch(`${service.api}/nothing`)).status, 404)
    t.equal((await fetch(`${service.api}/ui/../main.js`)).status, 404)

    t.comment('an empty installation leads to the first message')
    const browser = await openBrowser(t)
    const page = await browser.newPage()
    const seen = watch(page)
    await logIn(page, service)
    await page.waitForSelector('text=Send your first logs')
    t.same(await axe(page), [])
    t.match(
      await text(page, '.snippet pre'),
      `curl -s ${service.collector}/ingest`,
      'the port that is open, whatever it is',
    )
    await page.click('text=Make a key')
    await page.waitForSelector('.made-key code')
    const key = (await text(page, '.made-key code')).trim()
    const command = await text(page, '.snippet pre')
    t.ok(command.includes(`Bearer ${key}`))
    const [, body = ''] = /-d '(.*)'/.exec(command) ?? []
    const sent = await collect(service, 'POST /ingest', { token: key, body })
    t.equal(sent.status, 202, 'what the page shows can be sent')
    await page.waitForSelector('text=Received 1 message')
    await page.click('text=Look at it')
    await page.waitForSelector('.events .row:has-text("payment timed out")')

    t.comment('the demo fills an empty installation only')
    const target = {
      collector: service.collector,
      isEmpty: async () => (await service.call('GET /api/sources')).body.length === 0,
      newKey: async () => ({ key: INGEST_KEY, release: async () => undefined }),
    }
    t.equal(await fillWithDemo(target, Date.now()), null)
    await service.call('DELETE /api/monitoring/clear-all')
    const filled = (await fillWithDemo(target, Date.now())) ?? 0
    t.ok(filled > 20_000)
    await settled(service)
    await explore(t, page, service, { seen, filled })
    await dashboards(t, page, service)
    await others(t, page, service)
    await leftAlone(t, page, service)
    await operate(t, page, service)
    await wide(t, page, service)
    await narrow(t, page, service)
    t.same([...seen.hosts], [new URL(service.api).host], 'nothing is asked of others')
    t.same(seen.faults, [], 'the console has no errors')
    await logIn(page, service)
    await manyTemplates(t, page, service)
    await sessionEnds(t, page)
  },
)

/** The list is of 100 templates, and its order is that of all. */
async function manyTemplates(t: Test, page: Page, service: LiveService): Promise<void> {
  t.comment('more templates than are listed')
  const letters = (n: number): string =>
    String.fromCharCode(97 + (n % 26), 97 + (Math.floor(n / 26) % 26))
  const words = (n: number): string =>
    [n * 7 + 1, n * 11 + 2, n * 13 + 3].map((x) => `k${letters(x)}${letters(n)}v`).join(' ')
  const form = (n: number, times: number) =>
    Array.from({ length: times }, (_, i) => ({
      source: `crowd-${n % 4}`,
      severity: n === 120 ? 'CRITICAL' : 'INFO',
      message: `${words(n)} ${i}`,
    }))
  await service.ingest(Array.from({ length: 120 }, (_, n) => form(n, 5)).flat())
  await service.ingest(form(120, 2))
  await settled(service)
  await page.setViewportSize({ width: 1440, height: 900 })
  const first = '.template-list li:nth-child(2) >> css=a'
  const rare = words(120).slice(0, 5)
  for (const [order, listed] of [
    ['rare', 'rarest'],
    ['priority', 'most urgent'],
    ['new', 'newest'],
  ] as const) {
    await page.goto(`${service.api}/templates?from=now-2h&q=source:crowd*&order=${order}`)
    await page.waitForSelector(
      `.totals:has-text("602 occurrences"):has-text("the 100 ${listed} are listed")`,
    )
    await page.waitForSelector(`${first}:has-text("${rare}")`)
    t.equal(await page.locator('.template-list a').count(), 100)
    t.equal(
      await page.locator(`${first} >> css=rect:not([height="0"])`).count(),
      1,
      'with its course over time',
    )
  }
  await page.keyboard.press('j')
  await page.keyboard.press('j')
  await page.keyboard.press('k')
  t.equal(await page.locator(`${first}:focus`).count(), 1)
  t.same(await axe(page), [])
  await page.setViewportSize({ width: 375, height: 720 })
  t.ok((await widthOf(page)) <= 375)
  await page.goto(`${service.api}/live?q=source:throng`)
  await page.waitForSelector('.pulse.open')
  await page.click('.segments >> text=Templates')
  const throng = Array.from({ length: 210 }, (_, n) => ({
    source: 'throng',
    message: words(n + 200),
  }))
  await service.ingest(throng)
  const counts = 'Of the newest 210 events; of 210 templates the 200 most frequent'
  await page.waitForSelector(`.template-lines .note:text-is("${counts}")`)
  t.pass('what is not listed is counted')
}

/** Whether a menu has the focus in the moment in which it comes. */
const FOCUS_OF_MENU = `new Promise((resolve) => {
  const observer = new MutationObserver(() => {
    const menu = document.querySelector('.variable-menu')
    if (menu === null) return
    observer.disconnect()
    resolve(menu.contains(document.activeElement))
  })
  observer.observe(document.body, { subtree: true, childList: true })
})`

async function sessionEnds(t: Test, page: Page): Promise<void> {
  t.comment('a session that has ended')
  await page.setViewportSize({ width: 1280, height: 720 })
  await page.context().clearCookies()
  // The page may ask, and learn it, before the click.
  await page.click('a[href^="/sources"]', { timeout: 5_000 }).catch(() => undefined)
  await page.waitForSelector('.log-in .problem:has-text("Your session has ended")')
  const address = page.url()
  await page.fill('input[name=email]', ADMIN.email)
  await page.fill('input[name=password]', ADMIN.password)
  await page.keyboard.press('Enter')
  await page.waitForSelector('.screen')
  t.equal(page.url(), address, 'it goes on where it ended')
}

interface Facts {
  readonly seen: Seen
  readonly filled: number
}

async function explore(
  t: Test,
  page: Page,
  service: LiveService,
  { seen, filled }: Facts,
): Promise<void> {
  t.comment('Explore')
  seen.loaded.clear()
  let sessions = 0
  const countSession = (request: Request): void => {
    if (request.url().endsWith('/api/auth/me')) sessions++
  }
  page.on('request', countSession)
  await page.goto(`${service.api}/explore?from=now-2h`)
  await page.waitForSelector('.events .row')
  page.off('request', countSession)
  t.equal(sessions, 1, 'the page asks once who is logged in')
  t.equal(await page.locator('.shell').count(), 1, 'the empty shell of the document is gone')
  await page.waitForSelector('.fields .value')
  t.ok(
    bytesOf(seen, '.js') <= FIRST_JS_BYTES,
    `${bytesOf(seen, '.js')} bytes of scripts at first use`,
  )
  t.ok(bytesOf(seen, '.css') <= FIRST_CSS_BYTES, `${bytesOf(seen, '.css')} bytes of styles`)
  const total = Number((await text(page, '.totals strong')).replaceAll(',', ''))
  t.equal(total, filled - 4, 'all but the dead letters')
  const known = await service.call('GET /api/logs/facets?fields=template&start_time=now-2h')
  await page.waitForSelector(`.totals:has-text("${known.body.facets[0].distinct} templates")`)
  t.ok((await page.locator('.events .row').count()) < 80, 'only what is seen is drawn')
  if (SHOTS !== undefined) await page.screenshot({ path: join(SHOTS, 'explore.png') })
  t.same(await axe(page), [])
  await anyPlace(t, page, service)

  t.comment('more values of a field')
  const hosts = page.locator('.fields section:has(h2:text-is("host")) li .value')
  t.equal(await hosts.count(), 8)
  await page.click('.fields section:has(h2:text-is("host")) button:has-text("more values")')
  await hosts.nth(8).waitFor()

  t.comment('a query by keyboard, with completion and an error at its place')
  await page.keyboard.press('/')
  await page.keyboard.type('sev')
  await page.waitForSelector('.proposals >> text=severity')
  await page.keyboard.press('Tab')
  await page.keyboard.type('err')
  await page.waitForSelector('.proposals li:has-text("error")')
  await page.keyboard.press('Tab')
  await page.keyboard.type('priority:P9')
  await page.keyboard.press('Enter')
  await page.waitForSelector('#query-problem:has-text("P1")')
  t.equal(await text(page, '.mirror .wrong'), 'P9')
  for (let i = 0; i < 11; i++) await page.keyboard.press('Backspace')
  await page.keyboard.press('Escape')
  await page.waitForSelector('.proposals', { state: 'detached' })
  await page.waitForSelector('textarea:focus')
  await page.waitForSelector('.run.primary')
  await page.keyboard.press('Enter')
  await page.waitForSelector(`.totals strong:not(:text-is("${total.toLocaleString('en-US')}"))`)
  t.equal(param(page, 'q'), 'severity:error')
  await page.keyboard.press('Escape')
  await page.keyboard.press('Escape')

  t.comment('facets: only, and not')
  await page.click('.fields .value:has-text("payments")')
  await page.waitForURL(/source:payments/)
  t.equal(param(page, 'q'), 'severity:error source:payments')
  await page.waitForSelector('.fields li.only:has-text("payments")')
  await page.click('.fields .value:has-text("payments")')
  await page.waitForURL((url) => url.searchParams.get('q') === 'severity:error')
  // Nothing moves any more when all has come.
  await page.waitForSelector('.fields .value:has-text("checkout")')
  await page.waitForSelector('.chart-room[aria-busy=false]')
  await page.click('.fields .value:has-text("checkout")', { modifiers: ['Alt'] })
  await page.waitForURL(/-source:checkout/)
  await page.waitForSelector('.events .row.error')

  t.comment('brush, while what it is drawn on is answered anew')
  await page.waitForSelector('.chart-room[aria-busy=false]')
  const box = await page.locator('.chart .u-over').boundingBox()
  if (box === null) throw new Error('no chart')
  await page.mouse.move(box.x + box.width * 0.5, box.y + 40)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width * 0.6, box.y + 40, { steps: 2 })
  const answer = page.waitForResponse(/histogram\?.*by=severity/)
  await page.keyboard.press('r')
  await (await answer).finished()
  await page.waitForSelector('.chart-room[aria-busy=false]')
  await page.mouse.move(box.x + box.width * 0.99, box.y + 40, { steps: 4 })
  await page.mouse.up()
  await page.waitForURL(/from=2/)
  const spanMs = Date.parse(param(page, 'to') ?? '') - Date.parse(param(page, 'from') ?? '')
  t.ok(Math.abs(spanMs / 7_200_000 - 0.49) < 0.02, `the whole brush: ${spanMs} ms`)
  await page.goBack()
  await page.waitForURL(/from=now/)
  await page.waitForSelector(`.chart-room[aria-busy=false]`)
  await page.waitForTimeout(500)

  t.comment('export')
  await page.click('[aria-label="Export all events"]')
  const download = page.waitForEvent('download')
  await page.click('text=NDJSON')
  await page.waitForSelector('.notice:has-text("Saved:")')
  const lines = readFileSync(await (await download).path(), 'utf8')
    .trim()
    .split('\n')
  const listed = Number((await text(page, '.totals span >> nth=0')).replace(/\D/g, ''))
  t.same(JSON.parse(lines.at(-1) ?? ''), { complete: true, rows: listed })
  t.match(page.url(), /from=now/, 'a press elsewhere does not end the brush once more')

  t.comment('an event by keyboard: open, context, why, priority')
  await page.waitForSelector('.events .row.error')
  await page.locator('.events').focus()
  await page.keyboard.press('j')
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await page.waitForSelector('.detail .field-rows')
  const id = param(page, 'id')
  t.same(await axe(page), [])
  if (SHOTS !== undefined) await page.screenshot({ path: join(SHOTS, 'detail.png') })
  const before = (await service.call(`GET /api/logs/${id}`)).body.priority
  await page.keyboard.press(before === 'P4' ? '3' : '4')
  await page.waitForSelector(
    `.detail [aria-pressed=true]:has-text("${before === 'P4' ? 'P3' : 'P4'}")`,
  )
  const after = (await service.call(`GET /api/logs/${id}`)).body
  t.equal(after.priority_source, 'manual')
  await page.keyboard.press('c')
  await page.waitForSelector('.context [aria-current=true]')
  t.ok((await page.locator('.context li').count()) > 20)
  await page.click('text=Why this priority')
  await page.waitForSelector('text=A person has set the priority')
  await page.keyboard.press('Escape')
  await page.waitForSelector('.detail', { state: 'detached' })

  t.comment('what follows an event whose template is muted is current')
  await page.waitForSelector('.events .row[data-current]')
  const index = async () => page.getAttribute('.events .row[data-current]', 'data-index')
  const chosen = await index()
  await page.keyboard.press('m')
  await page.waitForURL(/-template:/)
  await page.waitForSelector('.chart-room[aria-busy=false]')
  await page.waitForSelector('.events .row[data-current]')
  t.ok(Number(await index()) <= Number(chosen), `${await index()} after ${chosen}`)
  await page.goBack()
  await page.waitForURL((url) => !url.search.includes('template'))

  t.comment('the same as a table, as templates and as JSON')
  await page.click('[aria-label="Show as"] [aria-label=table]')
  await page.waitForSelector('.table-head:has-text("source")')
  await page.hover('.table-head span:has-text("host")')
  await page.click('[aria-label="Remove the column host"]')
  await page.waitForSelector('.table-head:not(:has-text("host"))')
  t.same(await axe(page), [])
  await page.click('[aria-label="Show as"] [aria-label=JSON]')
  await page.waitForSelector('.events .row:has-text(\'"severity":"ERROR"\')')
  await page.click('[aria-label="Show as"] [aria-label=templates]')
  await page.waitForSelector('.template-counts button:has-text("connection pool exhausted")')
  // Each has its text, not its id.
  const nameless = '.template-counts .template-text:text-matches("^[0-9a-f]{16}$")'
  await page.waitForSelector(nameless, { state: 'detached' })
  t.same(await axe(page), [])
  await page.click('.template-counts button:has-text("connection pool exhausted")')
  await page.waitForURL(/template:/)
  await page.waitForSelector('.template-counts .note:text-matches("1 template$")')
  await page.click('[aria-label="Show as"] [aria-label=list]')

  t.comment('what varies in a message')
  const hasFocus = page.evaluate<boolean>(FOCUS_OF_MENU)
  await page.click('.events .row:has-text("connection pool") .message i >> nth=0')
  t.ok(await hasFocus, 'what is pressed as soon as the menu is there is for the menu')
  await page.waitForSelector('.variable-menu a:has-text("Top values")')
  await page.keyboard.press('Escape')
  await page.waitForSelector('.variable-menu', { state: 'detached' })
  t.comment('by keyboard: the arrows choose it, Enter opens its menu')
  await page.locator('.events').focus()
  await page.keyboard.press('j')
  await page.keyboard.press('ArrowRight')
  t.equal(await text(page, '.events .message i[role=button]'), '20')
  t.same(await axe(page), [])
  await page.keyboard.press('Enter')
  await page.waitForSelector('.variable-menu button:focus:has-text("Only events")')
  await page.keyboard.press('ArrowUp')
  await page.waitForSelector('.variable-menu button:focus:has-text("Open the event")')
  await page.keyboard.press('Escape')
  await page.waitForSelector('.events:focus')
  await page.keyboard.press('ArrowLeft')
  await page.keyboard.press('Enter')
  await page.click('.detail [aria-label^="Only events with this text"] >> nth=0')
  await page.waitForURL(/q=[^&]*%22/)
  await page.keyboard.press('Escape')

  t.comment('nothing found: which clause empties it')
  await page.goto(`${service.api}/explore?from=now-2h&q=severity:error+source:nowhere`)
  await page.waitForSelector('.looser button:has-text("source:nowhere")')
  await page.click('.looser button')
  await page.waitForSelector('.events .row.error')

  t.comment('hostile rows')
  const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`field_${i}`, i]))
  await service.ingest([
    { severity: 'ERROR', message: 'many attributes', tags: many },
    ...HOSTILE.map((message) => ({
      source: `s ${message.slice(0, 60)}`,
      host: message.slice(0, 200),
      severity: 'ERROR',
      message,
      tags: { [message.slice(0, 40)]: message.slice(0, 500) },
    })),
  ])
  await settled(service)
  await page.goto(`${service.api}/explore?from=now-5m&q=severity:error+message:*`)
  await page.waitForSelector('.events .row:has-text("right to left")')
  await page.keyboard.press('j')
  for (let i = 0; i < HOSTILE.length; i++) {
    await page.keyboard.press(i === 0 ? 'Enter' : 'j')
    await page.waitForSelector('.detail .field-rows')
    await isClean(t, page, `hostile row ${i}`)
  }
  await page.click('.events .row:has-text("one long line")')
  await page.waitForSelector('.detail pre:has-text("one long line")')
  const shown = () => page.locator('.detail pre').innerText()
  t.ok((await shown()).length < 3000, 'the beginning')
  await page.click('text=Show the whole message')
  await page.waitForSelector('text=Show less')
  await page.waitForSelector('.detail pre:text-matches("x{200000}")')
  await page.click('.events .row:has-text("many attributes")')
  await page.waitForSelector('.detail dt:text-is("field_0")')
  t.ok((await page.locator('.detail dt').count()) < 100, 'only what is seen is drawn')
  for (const next of [15, 23, 31, 39]) {
    await page.locator('.detail dt').last().scrollIntoViewIfNeeded()
    await page.waitForSelector(`.detail dt:text-is("field_${next}")`)
  }
  await page.keyboard.press('Escape')
}

/** A list of thousands of rows has the right one at any place, which the export tells. */
async function anyPlace(t: Test, page: Page, service: LiveService): Promise<void> {
  t.comment('the right row at any place')
  const { text: exported } = await service.call(
    'GET /api/logs/export?order=desc&fields=message&start_time=now-2h',
  )
  const messages = exported.split('\n').map((line) => String(JSON.parse(line || '{}').message))
  for (const share of [0.5, 1, 0.13, 0]) {
    await page.evaluate(`{
      const list = document.querySelector('.events')
      list.scrollTop = ${share} * (list.scrollHeight - list.clientHeight)
    }`)
    const place = Math.floor(share * (messages.length - 12))
    await page.waitForSelector(`.events .row:not(.waiting)[data-index="${place}"]`)
    await page.waitForSelector('.events .row.waiting', { state: 'detached' })
    const rows = await page.$$eval('.events .row', (all) =>
      all.map((row) => [row.getAttribute('data-index') ?? '', row.textContent ?? ''] as const),
    )
    const wrong = rows.filter(
      ([index, shown]) => !shown.includes(messages[Number(index)]?.slice(0, 60) ?? 'no message'),
    )
    t.same(wrong, [], `at ${share} of ${messages.length}`)
    t.ok(rows.length > 20 && rows.length < 80, `${rows.length} rows`)
  }
}

/** What comes over the sockets of a page about a tail. */
function countTail(page: Page) {
  const counted = { matched: 0, rows: 0, leftOut: 0 }
  page.on('websocket', (socket) => {
    socket.on('framereceived', ({ payload }) => {
      if (!String(payload).includes('"tail:rows"')) return
      const { matched, rows, left_out: leftOut } = JSON.parse(String(payload))
      counted.matched += matched
      counted.rows += rows.length
      counted.leftOut += leftOut
    })
  })
  return counted
}

const BURST = 3000

async function leftAlone(t: Test, page: Page, service: LiveService): Promise<void> {
  t.comment('a fast tail: received + left out = sent')
  const tab = await page.context().newPage()
  const counted = countTail(tab)
  await tab.goto(`${service.api}/live?q=source:burst`)
  await tab.waitForSelector('.pulse.open')
  const burst = Array.from({ length: BURST }, (_, i) => ({ source: 'burst', message: `shot ${i}` }))
  await service.ingest(burst)
  await tab.waitForSelector('.totals:has-text("3,000 events")')
  t.equal(counted.matched, BURST)
  t.equal(counted.rows + counted.leftOut, BURST)
  const shown = /([\d,]+) left out/.exec(await tab.innerText('.totals'))?.[1] ?? '0'
  t.equal(Number(shown.replaceAll(',', '')), counted.leftOut, 'the page says what it left out')

  t.comment('a hidden tab asks nothing; one that is left open asks no more than it did')
  let asked = 0
  const open = new Set<unknown>()
  tab.on('request', () => asked++)
  tab.on('websocket', (socket) => {
    open.add(socket)
    socket.on('close', () => open.delete(socket))
  })
  await tab.clock.install()
  await tab.goto(`${service.api}/overview`)
  await tab.waitForSelector('.tile:has-text("Health")')
  const minutes = async (n: number): Promise<number> => {
    asked = 0
    for (let i = 0; i < n * 6; i++) await tab.clock.runFor(10_000)
    return asked
  }
  await minutes(1)
  const perMinute = await minutes(1)
  t.ok(perMinute > 0)
  t.ok((await minutes(5)) <= 6 * perMinute, 'it asks no more than before')
  t.equal(open.size, 1)
  const hide = (isHidden: boolean) =>
    tab.evaluate(`
      Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))
    `)
  await hide(true)
  t.equal(await minutes(5), 0)
  t.equal(open.size, 0)
  await hide(false)
  t.ok((await minutes(1)) > 0)
  t.equal(open.size, 1)
  await tab.close()
}

async function dashboards(t: Test, page: Page, service: LiveService): Promise<void> {
  t.comment('a search becomes a panel of a dashboard')
  await page.goto(`${service.api}/explore?from=now-2h&q=severity:error&by=source`)
  for (const [kind, name] of [
    ['series', 'Errors over time'],
    ['top', 'Errors by source'],
    ['number', 'Errors in all'],
    ['table', 'Newest errors'],
  ] as const) {
    await page.click('[aria-label="Saved views and history"]')
    await page.click('text=Save this view')
    await page.fill('.save-view [name=name]', name)
    await page.selectOption('.save-view select >> nth=0', kind)
    await page.fill('.save-view [name=dashboard]', 'Team')
    await page.click('.save-view button.primary')
    await page.waitForSelector('.save-view', { state: 'detached' })
  }
  await page.goto(`${service.api}/overview`)
  await page.click('.tabs a:has-text("Team")')
  await page.waitForSelector('.panel-series:has-text("Errors over time") canvas')
  await page.waitForSelector('.panel-top a:has-text("checkout")')
  await page.waitForSelector('.panel-table .row.error')
  await page.waitForSelector('.panel-number .figure[title]')
  const from = new Date(Date.now() - 7_200_000).toISOString()
  const { body } = await service.call(`GET /api/logs/histogram?start_time=${from}&q=severity:error`)
  t.equal(await page.getAttribute('.panel-number .figure', 'title'), `${body.total}`)
  t.same(await axe(page), [])
  const download = page.waitForEvent('download')
  await page.click('.dashboard-tools a:has-text("Export")')
  const file = await (await download).path()
  t.equal(JSON.parse(readFileSync(file, 'utf8')).panels.length, 4)
  await page.setInputFiles('.dashboard-tools input[type=file]', file)
  await page.waitForSelector('.notice:has-text("Imported: 0 panels; 4 are here already")')
  await page.hover('.panel-number')
  await page.click('.panel-number >> text=Delete')
  await page.click('.panel-number >> text=Delete it')
  await page.waitForSelector('.panel-number', { state: 'detached' })
  await page.setInputFiles('.dashboard-tools input[type=file]', file)
  await page.waitForSelector('.notice:has-text("Imported: 1 panel; 3 are here already")')
  await page.waitForSelector('.panel-number')
}

async function others(t: Test, page: Page, service: LiveService): Promise<void> {
  t.comment('Live')
  await page.goto(`${service.api}/live?q=severity:error`)
  await page.waitForSelector('.pulse.open')
  await page.waitForSelector('.freshness')
  const send = (n: number) =>
    service.ingest([
      { source: 'tail', severity: 'ERROR', message: `tailed ${n}` },
      { source: 'tail', message: 'not asked for' },
    ])
  await send(1)
  await page.waitForSelector('.events .row:has-text("tailed 1")')
  await page.keyboard.press(' ')
  await page.waitForSelector('text=Paused')
  await send(2)
  await page.waitForSelector('text=Paused · 1 new')
  await page.keyboard.press('k')
  await page.waitForSelector('.events .row[data-current]:has-text("tailed 1")')
  await page.keyboard.press('Enter')
  await page.waitForSelector('.detail .field-rows')
  await page.keyboard.press('Escape')
  await page.waitForSelector('.detail', { state: 'detached' })
  t.equal(await page.locator('.events .row:has-text("tailed 2")').count(), 0, 'nothing moves')
  t.same(await axe(page), [])
  await page.keyboard.press(' ')
  await page.waitForSelector('.events .row:has-text("tailed 2")')
  t.equal(await page.locator('.row:has-text("not asked for")').count(), 0)
  await page.fill('.mark-words input', 'tailed')
  await page.waitForSelector('.events .row.error mark')
  t.same(await axe(page), [], 'highlighted words')

  t.comment('an event alone, among those before it')
  const { items } = (await service.call('GET /api/logs?limit=1&order=asc')).body
  await page.goto(`${service.api}/events/${items[0].id}`)
  await page.waitForSelector('.detail .field-rows')
  await page.waitForSelector('.events .row[aria-selected=true]')
  t.ok(Date.parse(param(page, 'from') ?? '') < Date.parse(items[0].timestamp))

  t.comment('Templates')
  await page.goto(`${service.api}/templates?from=now-2h`)
  await page.waitForSelector('.template-list a:has-text("placed with")')
  t.same(await axe(page), [])
  await page.click('.template-list a:has-text("placed with")')
  await page.waitForSelector('.template-head')
  await page.waitForSelector('.newest a')
  await page.waitForSelector('.variables code')
  await page.waitForSelector('.variables .note:has-text("p95")')
  await page.click('.template-head [aria-label=Priority] >> text=P3')
  await page.waitForSelector('.corrected li:has-text("P3"):has-text("you")')
  await page.fill('.note-form textarea', 'an order came in <b data-evil>')
  await page.click('text=Save note')
  await page.waitForSelector('.card:has(.note-form) > .note:has-text("you")')
  t.equal(await page.locator('[data-evil]').count(), 0)
  t.same(await axe(page), [])

  t.comment('templates are told by their texts')
  await page.goto(`${service.api}/explore?from=now-2h&by=template`)
  await page.waitForSelector('.legend li:has-text("order ∗")', { state: 'attached' })

  t.comment('Sources and dead letters')
  await service.call('POST /api/sources', { json: { name: 'legacy-billing' } })
  await page.goto(`${service.api}/sources`)
  await page.waitForSelector('tr:has-text("gateway"):has-text("0 %")')
  await page.waitForSelector('tr:has-text("legacy-billing"):has-text("100 %")')
  t.same(await axe(page), [])
  const keptDays = async () =>
    (await service.call('GET /api/sources')).body.find(
      ({ name }: { name: string }) => name === 'auth',
    ).retention_days
  await page.focus('select[aria-label="Days that events of auth are kept"]')
  await page.keyboard.press('ArrowDown')
  await page.waitForSelector('tr:has-text("auth") .danger:has-text("Delete what is older")')
  t.equal(await keptDays(), null, 'a key press deletes nothing')
  await page.click('text=Leave')
  await page.waitForSelector('.danger', { state: 'detached' })
  await page.waitForSelector('select[aria-label="Days that events of auth are kept"]:focus')
  await page.selectOption('select[aria-label="Days that events of auth are kept"]', '30')
  await page.click('text=Delete what is older')
  await page.waitForSelector('.notice:has-text("kept for 30 days")')
  t.equal(await keptDays(), 30)
  await page.click('text=Dead letters')
  await page.waitForSelector('.letters:has-text("legacy-billing")')
  t.same(await axe(page), [])
  await page.click('.letters button:has-text("Replay all") >> nth=0')
  await page.waitForSelector('.notice:has-text("refused again"):has([href$="#circle-alert"])')
  await page.click('.letters li:has-text("31.02.2026") >> nth=0 >> text=Edit')
  await page.waitForSelector('.letters textarea:focus')
  const record = await page.inputValue('.letters textarea')
  await page.fill('.letters textarea', '{')
  await page.click('.letters li:has(textarea) >> text=Replay')
  await page.waitForSelector('.notice:has-text("Skipped: 1"):has([href$="#circle-alert"])')
  t.equal(await page.inputValue('.letters textarea'), '{', 'what is typed stays')
  await page.fill(
    '.letters textarea',
    record.replace(/31\.02\.2026 [0-9:]+/, new Date().toISOString()),
  )
  await page.click('.letters li:has(textarea) >> text=Replay')
  await page.waitForSelector('.notice:has-text("1 stored")')
  await page.waitForSelector('.letters button:focus')

  t.comment('Overview, in the dark theme too')
  await page.goto(`${service.api}/overview`)
  await page.waitForSelector('.tile:has-text("Health")')
  await page.waitForSelector('.ledger')
  t.equal(await page.locator('.calendar .day:not(:empty)').count(), 4)
  t.ok((await page.locator('.calendar .month:not(:empty)').count()) >= 5)
  await page.waitForSelector('.chart canvas')
  t.same(await axe(page), [])
  await page.evaluate("window.light = document.querySelector('.chart canvas').toDataURL()")
  await page.emulateMedia({ colorScheme: 'dark' })
  const isDrawnAnew = "document.querySelector('.chart canvas')?.toDataURL() !== window.light"
  await eventually(() => page.evaluate<boolean>(isDrawnAnew), Boolean)
  t.same(await axe(page), [], 'dark')
  await page.goto(`${service.api}/explore?from=now-2h`)
  await page.waitForSelector('.fields .value')
  t.same(await axe(page), [], 'dark')

  t.comment('everything by a few letters')
  await page.keyboard.press('Control+k')
  await page.waitForSelector('dialog.palette[open]')
  await page.keyboard.type('templ')
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/templates/)
  await page.keyboard.press('Control+k')
  await page.keyboard.type('gatew')
  await page.waitForSelector('dialog.palette li[aria-selected=true]:has-text("source")')
  await page.keyboard.press('Enter')
  await page.waitForURL(/q=source:gateway/)
  await page.keyboard.press('Control+k')
  await page.keyboard.type('pool exhausted')
  await page.waitForSelector('dialog.palette li[aria-selected=true]:has-text("template")')
  await page.keyboard.press('Enter')
  await page.waitForSelector('.template-head:has-text("connection pool exhausted")')
  for (const [words, to] of [
    ['second fac', /\/admin\/sessions$/],
    ['api tok', /\/admin\/tokens$/],
    ['dead lett', /\/sources\/dead-letters$/],
    ['maintenance wind', /\/alerts\/quiet/],
    ['new silence', /\/alerts\/quiet\?silence=$/],
  ] as const) {
    await page.keyboard.press('Control+k')
    await page.keyboard.type(words)
    await page.keyboard.press('Enter')
    await page.waitForURL(to)
  }
  await page.waitForSelector('dialog.modal[open]')
  await page.keyboard.press('Escape')
  await page.waitForSelector('dialog.modal', { state: 'detached' })
  await page.keyboard.press('?')
  await page.waitForSelector('dialog.keys[open]')
  await page.keyboard.press('Escape')
  await page.waitForSelector('dialog.keys', { state: 'detached' })
  const rows = await held(page, /\/api\/logs\?/)
  await page.goto(`${service.api}/explore?from=now-2h`)
  await page.waitForSelector('.explore')
  await page.keyboard.press('?')
  await page.waitForSelector('dialog.keys[open]')
  await rows.release()
  await page.waitForSelector('dialog.keys dd:text-is("mute the template of the event")')
  t.pass('the keys of rows are told when the rows come')
  await page.keyboard.press('Escape')
  await page.waitForSelector('dialog.keys', { state: 'detached' })
  await page.keyboard.press('g')
  await page.keyboard.press('s')
  await page.waitForURL(/\/sources/)
}

async function wide(t: Test, page: Page, service: LiveService): Promise<void> {
  t.comment('2,560 pixels')
  await page.setViewportSize({ width: 2560, height: 1440 })
  await page.goto(`${service.api}/alerts?rule=00000000-0000-4000-8000-000000000000`)
  const [room, nothing] = await Promise.all(
    ['.scroll', '.nothing h2'].map((selector) => page.locator(selector).boundingBox()),
  )
  const middleOf = (box: typeof room): number => (box == null ? NaN : box.x + box.width / 2)
  t.ok(Math.abs(middleOf(room) - middleOf(nothing)) < 20, 'no alert is told in the middle')
  await page.goto(`${service.api}/incidents`)
  await page.waitForSelector('.lane')
  for (const lane of await page.locator('.lane').all())
    t.ok(
      ((await lane.boundingBox())?.height ?? 0) > 1200,
      'a column of the board is seen to its end',
    )
}

/** The widest of what could be scrolled sideways, pixels. */
const widthOf = (page: Page): Promise<number> =>
  page.evaluate<number>(
    'Math.max(...[...document.querySelectorAll("html, .scroll, .top-bar, .template-list")].map((one) => one.scrollWidth))',
  )

async function narrow(t: Test, page: Page, service: LiveService): Promise<void> {
  t.comment('375 pixels')
  await page.setViewportSize({ width: 375, height: 720 })
  const title = 'long'.repeat(70)
  const incident = await service.call('POST /api/incidents', { json: { title, severity: 'P3' } })
  for (const path of [
    `/incidents/${incident.body.id}`,
    '/explore?from=now-2h',
    '/explore?from=now-2h&as=table&cols=time,severity,source,host,priority,trace,message',
    '/live',
    '/templates?from=now-2h',
    '/overview',
    '/sources',
    '/sources/send',
    '/alerts',
    '/alerts/rules',
    '/alerts/rules/new',
    '/incidents',
    '/insights',
    '/admin',
    '/admin/storage',
    '/admin/users',
    '/admin/audit',
  ]) {
    await page.goto(service.api + path)
    await page.waitForSelector('.screen')
    await page.waitForTimeout(300)
    const width = await widthOf(page)
    t.ok(width <= 375, `${path}: ${width}`)
  }
  await page.goto(`${service.api}/alerts/rules`)
  const state = await page.locator('td .state >> nth=0').boundingBox()
  t.ok(state !== null && state.x + state.width < 375, 'the state of a rule is in sight')
  await page.goto(`${service.api}/explore?from=now-2h&as=JSON`)
  await page.waitForSelector('.events .cell:has-text("\\"severity\\":")')
  t.equal(await page.locator('.fields').count(), 0, 'the list has all of the room')
  await page.click('.fields-toggle')
  await page.waitForSelector('.fields .value')
  t.ok(await page.isVisible('.events .row >> nth=0'), 'and is there below the fields')
  t.comment('log-out')
  await page.click('[aria-label="Theme, keys and logout"]')
  await page.click('text=Log out')
  await page.waitForSelector('.log-in')
}
