/** Makes the screenshots of the README and the guides: the page with the demo's logs, in a real browser. */

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { chromium, type Page } from 'playwright-core'

const OUT = fileURLToPath(new URL('../../src/docs/images/', import.meta.url))
const MAIN = fileURLToPath(new URL('../program/main.js', import.meta.url))
const EXECUTABLE = process.env['CHROMIUM'] ?? '/usr/bin/chromium'

interface Started {
  readonly page: string
  readonly collector: string
  readonly key: string
  readonly password: string
}

/** Reads the output of the first start until the demo's logs are stored. */
function started(output: NodeJS.ReadableStream): Promise<Started> {
  return new Promise((resolve, reject) => {
    let text = ''
    output.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      const found = (what: RegExp): string => what.exec(text)?.[1] ?? ''
      if (!/demo +\d+ messages/.test(text)) return
      resolve({
        page: found(/page +(http:\S+)/),
        collector: found(/collector +(http:\S+)/),
        key: found(/ingest key +(\S+)/),
        password: found(/admin@localhost +(\S+)/),
      })
    })
    output.on('end', () => reject(new Error(`the service did not start:\n${text}`)))
  })
}

async function brush(page: Page): Promise<void> {
  const box = await page.locator('.chart .u-over').boundingBox()
  if (box === null) throw new Error('no chart')
  await page.keyboard.down('Shift')
  await page.mouse.move(box.x + box.width * 0.6, box.y + 40)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width * 0.84, box.y + 40, { steps: 4 })
  await page.mouse.up()
  await page.keyboard.up('Shift')
  await page.mouse.move(560, 20)
  await page.waitForSelector('.causes a')
}

async function openEvent(page: Page): Promise<void> {
  await page.locator('.events').focus()
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  await page.click('.detail >> text=Trace')
  await page.waitForSelector('.trace li')
}

const SCREENS = [
  { name: 'explore', path: 'explore?from=now-1h', ready: '.fields .value' },
  { name: 'why', path: 'explore?from=now-1h&q=severity:error', ready: '.events .row', act: brush },
  {
    name: 'trace',
    path: 'explore?from=now-1h&q=severity:error+source:gateway',
    ready: '.events .row',
    act: openEvent,
    isDark: true,
  },
  { name: 'overview', path: 'overview', ready: '.chart canvas', isDark: true },
] as const

const folder = mkdtempSync(join(tmpdir(), 'screenshots-'))
const service = spawn(process.execPath, [MAIN, '--demo'], {
  env: { ...process.env, DATA_DIR: join(folder, 'data'), API_PORT: '0', COLLECTOR_PORT: '0' },
  stdio: ['ignore', 'pipe', 'inherit'],
})
try {
  const { page: base, collector, key, password } = await started(service.stdout)
  // The ledger begins to count at the next full ten seconds.
  await sleep(10_000)
  await fetch(collector, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({
      source: 'gateway',
      host: 'gw-1',
      message: 'health check answered in 2 ms',
    }),
  })
  const browser = await chromium.launch({ executablePath: EXECUTABLE, args: ['--no-sandbox'] })
  const context = await browser.newContext({ viewport: { width: 1080, height: 620 } })
  await context.request.post(new URL('/api/auth/login', base).href, {
    data: { email: 'admin@localhost', password },
  })
  const page = await context.newPage()
  for (const screen of SCREENS) {
    await page.emulateMedia({ colorScheme: 'isDark' in screen ? 'dark' : 'light' })
    await page.goto(new URL(screen.path, base).href)
    await page.waitForSelector(screen.ready)
    // The first answers after a start take longer than usual.
    await page.reload()
    await page.waitForSelector(screen.ready)
    await page.waitForSelector('.freshness:has-text("0 missing")', { timeout: 90_000 })
    await page.waitForLoadState('networkidle')
    if ('act' in screen) await screen.act(page)
    await page.waitForTimeout(800)
    await page.screenshot({ path: join(OUT, `${screen.name}.png`) })
  }
  await browser.close()
} finally {
  service.kill()
  await new Promise((resolve) => service.once('exit', resolve))
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}
