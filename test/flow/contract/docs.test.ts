import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium, type BrowserContextOptions, type Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { GUIDES } from '../../../src/api/guides.js'
import { ADMIN } from '../../support/service.js'
import { settled, startLiveService } from '../../support/live-service.js'

const EXECUTABLE = process.env['CHROMIUM'] ?? '/usr/bin/chromium'
const mustRun = process.env['CI'] === 'true'
const isMissing = !existsSync(EXECUTABLE) && !mustRun
const reason = `no browser at ${EXECUTABLE}; CHROMIUM names another`

const QUIET = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

const service = await startLiveService(t)

async function openPage(t: Test, options: BrowserContextOptions): Promise<Page> {
  const folder = mkdtempSync(join(tmpdir(), 'docs-browser-'))
  const args = QUIET
  const launch = { executablePath: EXECUTABLE, headless: true, args, ...options }
  const browser = await chromium.launchPersistentContext(folder, launch)
  t.teardown(async () => {
    await browser.close()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  return await browser.newPage()
}

interface Seen {
  readonly faults: string[]
  readonly hosts: Set<string>
}

/** Collects errors of the console and the hosts that are asked. */
function watch(page: Page): Seen {
  const seen: Seen = { faults: [], hosts: new Set() }
  page.on('pageerror', (error) => seen.faults.push(error.message))
  page.on('console', (message) => {
    // The reference asks whether a cookie of an earlier login holds.
    const isExpected = message.location().url.endsWith('/api/auth/me')
    if (message.type() === 'error' && !isExpected) seen.faults.push(message.text())
  })
  page.on('request', (request) => seen.hosts.add(new URL(request.url()).host))
  return seen
}

t.test(
  'in a browser the docs log in, run a query and show the live channel',
  { skip: isMissing ? reason : false },
  async (t) => {
    await service.ingest([
      { source: 'press', severity: 'ERROR', message: 'roller 7 is too hot' },
      { source: 'press', severity: 'INFO', message: 'roller 7 cools down' },
    ])
    await settled(service)
    const page = await openPage(t, { viewport: { width: 1280, height: 900 } })
    const { faults, hosts } = watch(page)

    await page.goto(`${service.api}/docs`)
    await page.click('#operations-tag-logs')
    await page.waitForSelector('#operations-logs-listEvents')
    await page.fill('input[name=email]', ADMIN.email)
    await page.fill('input[name=password]', ADMIN.password)
    await page.click('#log-in button')
    await page.waitForSelector(`#who:has-text("${ADMIN.email} (superadmin)")`)

    await page.click('#live button:has-text("Connect")')
    await page.waitForSelector('#live .log:has-text("unique_events")')
    t.pass('the live channel shows a snapshot')

    const list = '#operations-logs-listEvents'
    await page.click(`${list} .opblock-summary-control`)
    await page.selectOption(`${list} tr[data-param-name=severity] select`, ['ERROR', 'INFO'])
    await page.click(`${list} .execute`)
    await page.waitForSelector(`${list} .live-responses-table:has-text("roller 7 cools down")`)
    t.pass('the query shows its events')

    t.comment('what deletes asks before')
    const asked: string[] = []
    let answer = false
    page.on('dialog', (dialog) => {
      asked.push(dialog.message())
      void (answer ? dialog.accept() : dialog.dismiss())
    })
    const sent: string[] = []
    page.on('request', (request) => {
      if (request.method() === 'DELETE') sent.push(new URL(request.url()).pathname)
    })
    const clear = '#operations-monitoring-clearAll'
    await page.click('#operations-tag-monitoring')
    await page.click(`${clear} .opblock-summary-control`)
    await page.click(`${clear} .execute`)
    t.match(asked, [/^DELETE \/api\/monitoring\/clear-all\n/])
    t.same(sent, [])
    answer = true
    await page.click(`${clear} .execute`)
    await page.waitForSelector(`${clear} .live-responses-table:has-text("cleared")`)
    t.same(sent, ['/api/monitoring/clear-all'])

    t.comment('the collector has a server of its own and is not called from here')
    const ingest = '#operations-collector-ingest'
    await page.click('#operations-tag-collector')
    await page.click(`${ingest} .opblock-summary-control`)
    await page.waitForSelector(`${ingest}:has-text("the collector")`)
    t.equal(await page.locator(`${ingest} .execute, ${ingest} .try-out__btn`).count(), 0)

    t.comment('a filter leaves no heading without operations')
    await page.fill('.operation-filter-input', 'dead-letters')
    await page.waitForSelector('#operations-tag-auth', { state: 'detached' })
    const tags = page.locator('.opblock-tag-section')
    t.equal(await tags.count(), 1)
    t.ok((await tags.locator('.opblock').count()) >= 2)

    const shots = process.env['SCREENSHOTS']
    if (shots !== undefined) {
      await page.screenshot({ path: join(shots, 'docs-query.png') })
      await page.evaluate('scrollTo(0, 0)')
      await page.screenshot({ path: join(shots, 'docs-top.png') })
    }
    t.same([...hosts], [new URL(service.api).host], 'nothing is loaded from elsewhere')
    t.same(faults, [], 'the console has no errors')
  },
)

t.test(
  'the reference fits a phone, and no id is there twice',
  { skip: isMissing ? reason : false },
  async (t) => {
    const page = await openPage(t, { viewport: { width: 390, height: 844 } })
    await page.goto(`${service.api}/docs`)
    await page.click('#operations-tag-logs')
    await page.click('#operations-logs-listEvents .opblock-summary-control')
    await page.waitForSelector('#operations-logs-listEvents .execute')
    const widths = await page
      .locator('html')
      .evaluate((html) => [html.scrollWidth, html.clientWidth])
    t.equal(widths[0], widths[1], 'it does not scroll sideways')
    const button = await page.locator('#log-in button').boundingBox()
    t.ok(button !== null && button.x >= 0 && button.x + button.width <= 390, 'the button is whole')
    const ids = await page.locator('[id]').evaluateAll((nodes) => nodes.map(({ id }) => String(id)))
    t.same(ids, [...new Set(ids)])
  },
)

t.test(
  'in a browser the guides are read and their headings searched, on a phone and without scripts too',
  { skip: isMissing ? reason : false },
  async (t) => {
    const page = await openPage(t, { viewport: { width: 1280, height: 900 } })
    const seen = watch(page)
    await page.goto(`${service.api}/docs`)
    await page.click('header a:has-text("Guides")')
    await page.waitForSelector('h1:has-text("Getting started")')
    t.notOk(await page.isVisible('#contents a:has-text("Backup and restore")'))
    await page.fill('#search', 'backup')
    const found = page.locator('#contents ol ol a:visible')
    t.same(await found.allTextContents(), ['Backup and restore', 'Backup of a cluster'])
    await page.fill('#search', 'no heading has this')
    t.equal(await found.count(), 0)
    t.match(await page.textContent('#nothing'), /No heading has/)
    await page.fill('#search', 'BACKUP restore')
    await page.press('#search', 'Enter')
    await page.waitForURL(`${service.api}/docs/operations#backup-and-restore`)
    t.ok(await page.isVisible('h2:has-text("Backup and restore")'))
    await page.click('article a[href="/docs/cluster"]')
    await page.waitForSelector('h1:has-text("Cluster")')

    t.comment('a phone without scripts')
    const phone = await openPage(t, {
      viewport: { width: 375, height: 800 },
      colorScheme: 'dark',
      javaScriptEnabled: false,
    })
    const seenByPhone = watch(phone)
    for (const name of GUIDES) {
      await phone.goto(`${service.api}/docs/${name}`)
      t.ok(await phone.isVisible('article h1'), name)
      const widths = await phone
        .locator('html')
        .evaluate((html) => [html.scrollWidth, html.clientWidth])
      t.equal(widths[0], widths[1], `${name} does not scroll sideways`)
    }
    t.notOk(await phone.isVisible('#search'), 'what needs a script is not shown')
    await phone.click('a:has-text("Contents")')
    await phone.click('#contents a:has-text("Sending logs")')
    await phone.waitForSelector('h1:has-text("Sending logs")')

    for (const { faults, hosts } of [seen, seenByPhone]) {
      t.same([...hosts], [new URL(service.api).host], 'nothing is loaded from elsewhere')
      t.same(faults, [], 'the console has no errors')
    }
  },
)
