/** What tests of the web page share: a browser, the log-in, checks of what is shown. */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { chromium, type BrowserContext, type Page } from 'playwright-core'
import type { Test } from 'tap'

import type { LiveService } from './live-service.js'
import { ADMIN, READY_MS } from './service.js'

const EXECUTABLE = process.env['CHROMIUM'] ?? '/usr/bin/chromium'
/** Only CI must have a browser. */
export const isMissing = !existsSync(EXECUTABLE) && process.env['CI'] !== 'true'
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
/** With SCREENSHOTS=DIR the screens are kept as pictures. */
export const SHOTS = process.env['SCREENSHOTS']

export async function openBrowser(t: Test): Promise<BrowserContext> {
  const folder = mkdtempSync(join(tmpdir(), 'page-browser-'))
  const args = [
    '--no-sandbox',
    '--disable-gpu',
    '--no-first-run',
    '--disable-background-networking',
  ]
  const viewport = { width: 1280, height: 800 }
  const launch = {
    executablePath: EXECUTABLE,
    headless: true,
    args,
    viewport,
    colorScheme: 'light',
    // Colours are judged as they are in the end.
    reducedMotion: 'reduce',
  } as const
  const browser = await chromium.launchPersistentContext(folder, launch)
  browser.setDefaultTimeout(READY_MS)
  t.teardown(async () => {
    await browser.close()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  return browser
}

export interface Seen {
  readonly faults: string[]
  readonly hosts: Set<string>
  readonly loaded: Map<string, number>
}

/** Collects errors of the console, hosts that are asked, and bytes of the page's files as they were sent. */
export function watch(page: Page): Seen {
  const seen: Seen = { faults: [], hosts: new Set(), loaded: new Map() }
  page.on('pageerror', (error) => seen.faults.push(error.message))
  page.on('console', (message) => {
    // The page asks for a log-in before there is one; a refused password and what is missing are part of the test.
    const isExpected =
      /\/api\/(?:auth\/|users$|notification-channels$|ai-insights\/snapshot)|nosuch/.test(
        message.location().url,
      )
    if (message.type() === 'error' && !isExpected) seen.faults.push(message.text())
  })
  page.on('request', (request) => seen.hosts.add(new URL(request.url()).host))
  page.on('response', (response) => {
    const { pathname } = new URL(response.url())
    if (!pathname.startsWith('/ui/')) return
    const file = new URL(`../../ui/${pathname.slice(4)}.gz`, import.meta.url)
    seen.loaded.set(pathname, readFileSync(file).length)
  })
  return seen
}

export const bytesOf = ({ loaded }: Seen, ending: string): number =>
  [...loaded].reduce((sum, [name, bytes]) => sum + (name.endsWith(ending) ? bytes : 0), 0)

export async function logIn(page: Page, service: LiveService): Promise<void> {
  await page.goto(`${service.api}/`)
  await page.waitForSelector('.log-in')
  await page.waitForSelector('.shell', { state: 'detached' })
  await page.fill('input[name=email]', ADMIN.email)
  await page.fill('input[name=password]', 'not the password')
  await page.click('text=Log in >> nth=-1')
  await page.waitForSelector('.log-in .problem:has-text("password")')
  await page.fill('input[name=password]', ADMIN.password)
  await page.keyboard.press('Enter')
  await page.waitForSelector('.shell')
}

/** Keeps back what is asked of these paths, until it is released. */
export async function held(page: Page, what: RegExp): Promise<{ release: () => Promise<void> }> {
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  await page.route(what, async (route) => {
    await released
    // The page may have given it up.
    await route.continue().catch(() => undefined)
  })
  return {
    release: async () => {
      release()
      await page.unroute(what)
    },
  }
}

export const text = (page: Page, selector: string): Promise<string> => page.innerText(selector)
export const param = (page: Page, name: string): string | null =>
  new URL(page.url()).searchParams.get(name)

interface Violation {
  readonly id: string
  readonly impact: string
  readonly on: readonly string[]
}

/** In the other theme only the colours are others. */
const AXE_RUN = `{
  const told = ({ violations }) => violations.map(({ id, impact, nodes }) => ({ id, impact, on: nodes.slice(0, 3).map((node) => node.html.slice(0, 160)) }))
  const root = document.documentElement
  const { theme } = root.dataset
  axe.run(document, { resultTypes: ['violations'] }).then(async (all) => {
    const isDark = matchMedia('(prefers-color-scheme: dark)').matches
    root.dataset.theme = isDark ? 'light' : 'dark'
    await Promise.allSettled(document.getAnimations().filter((one) => one instanceof CSSTransition).map(({ finished }) => finished))
    const others = await axe.run(document, { resultTypes: ['violations'], runOnly: ['color-contrast'] })
    root.dataset.theme = theme
    return [...told(all), ...told(others).map((one) => ({ ...one, id: one.id + ' in the other theme' }))]
  })
}`

/** Serious faults, in both themes, for people who can't see, or can't use a mouse. */
export async function axe(page: Page): Promise<readonly string[]> {
  await page.evaluate(AXE)
  const found = await page.evaluate<readonly Violation[]>(AXE_RUN)
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, on }) => `${id}: ${on.join(' | ')}`)
}
