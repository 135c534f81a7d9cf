import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import t from 'tap'
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

t.test(
  'in a browser the docs log in, run a query and show the live channel',
  { skip: isMissing ? reason : false },
  async (t) => {
    const service = await startLiveService(t)
    await service.ingest([
      { source: 'press', severity: 'ERROR', message: 'roller 7 is too hot' },
      { source: 'press', severity: 'INFO', message: 'roller 7 cools down' },
    ])
    await settled(service)
    const folder = mkdtempSync(join(tmpdir(), 'docs-browser-'))
    const browser = await chromium.launchPersistentContext(folder, {
      executablePath: EXECUTABLE,
      headless: true,
      args: QUIET,
      viewport: { width: 1280, height: 900 },
    })
    t.teardown(async () => {
      await browser.close()
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
    })
    const page = await browser.newPage()
    const faults: string[] = []
    const hosts = new Set<string>()
    page.on('pageerror', (error) => faults.push(error.message))
    page.on('console', (message) => {
      // the page asks whether a cookie of an earlier login holds
      const isExpected = message.location().url.endsWith('/api/auth/me')
      if (message.type() === 'error' && !isExpected) faults.push(message.text())
    })
    page.on('request', (request) => hosts.add(new URL(request.url()).host))

    await page.goto(`${service.api}/docs`)
    await page.waitForSelector('#listEvents')
    await page.fill('input[name=email]', ADMIN.email)
    await page.fill('input[name=password]', ADMIN.password)
    await page.click('#login button')
    await page.waitForSelector(`#who:has-text("${ADMIN.email} (superadmin)")`)

    await page.click('#live button:has-text("Connect")')
    await page.waitForSelector('#live .log:has-text("unique_events")')
    t.pass('the live channel shows a snapshot')

    await page.click('#listEvents > summary')
    await page.fill('#listEvents input[placeholder*="CRITICAL"]', 'ERROR,INFO')
    await page.click('#listEvents form button')
    await page.waitForSelector('#listEvents .result:has-text("roller 7 cools down")')
    t.pass('the query shows its events')

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
