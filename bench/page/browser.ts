import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { chromium, type Browser, type CDPSession, type Page } from 'playwright-core'
import type { Service } from '../lib/service.js'

const EXECUTABLE = process.env['CHROMIUM'] ?? '/usr/bin/chromium'

export const hasBrowser = (): boolean => existsSync(EXECUTABLE)

/** A browser of its own, so that nothing else is in its figures. */
export const openBrowser = (): Promise<Browser> =>
  chromium.launch({
    executablePath: EXECUTABLE,
    args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'],
  })

/** Records in the page when rows are painted, tasks of more than 50 ms, and the delay from keys to their paint. */
const OBSERVE = `
  window.seen = { rowsMs: 0, tasks: [], keys: new Map() }
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) seen.tasks.push(duration)
  }).observe({ type: 'longtask', buffered: true })
  new PerformanceObserver((list) => {
    for (const { interactionId: id, duration } of list.getEntries())
      if (id > 0) seen.keys.set(id, Math.max(duration, seen.keys.get(id) ?? 0))
  }).observe({ type: 'event', durationThreshold: 16, buffered: true })
  window.whenPainted = (isThere) => new Promise((resolve) => {
    const look = () => {
      if (!isThere()) return requestAnimationFrame(look)
      requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel()
        port1.onmessage = () => resolve(performance.now())
        port2.postMessage(null)
      })
    }
    look()
  })
  window.hasRows = () => document.querySelector('.events .row:not(.waiting)') !== null
  addEventListener('DOMContentLoaded', () => whenPainted(hasRows).then((ms) => { seen.rowsMs = ms }))
`

export interface Tab {
  readonly page: Page
  readonly cdp: CDPSession
  close(): Promise<void>
}

/** A tab of a new profile, without a cache, that is logged in. */
export async function openTab(browser: Browser, service: Service): Promise<Tab> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } })
  const { email, password } = service
  await context.request.post(`${service.api}/api/auth/login`, { data: { email, password } })
  await context.addInitScript(OBSERVE)
  const page = await context.newPage()
  const cdp = await context.newCDPSession(page)
  await cdp.send('Performance.enable')
  return { page, cdp, close: () => context.close() }
}

const UNTIL_MS = 60_000

/** Waits for an expression in the page. Its policy forbids the browser driver's own way, which evaluates text in it. */
export async function until(page: Page, expression: string): Promise<void> {
  for (const endMs = Date.now() + UNTIL_MS; Date.now() < endMs; await sleep(20))
    if (await page.evaluate<boolean>(`Boolean(${expression})`)) return
  throw new Error(`${expression} did not become true`)
}

export interface Usage {
  /** The time of the main thread's tasks so far. */
  readonly taskS: number
  readonly heapBytes: number
  readonly nodes: number
  readonly listeners: number
}

/** The resources of the tab after garbage collection. */
export async function usageOf({ cdp }: Tab): Promise<Usage> {
  await cdp.send('HeapProfiler.collectGarbage')
  const { metrics } = await cdp.send('Performance.getMetrics')
  const of = (name: string): number => metrics.find((one) => one.name === name)?.value ?? Number.NaN
  return {
    taskS: of('TaskDuration'),
    heapBytes: of('JSHeapUsedSize'),
    nodes: of('Nodes'),
    listeners: of('JSEventListeners'),
  }
}

/** The longest task of more than 50 ms since the last call; 0 for none. */
export const longestTask = ({ page }: Tab): Promise<number> =>
  page.evaluate<number>('Math.max(0, ...seen.tasks.splice(0))')

interface TraceEvent {
  readonly name: string
  readonly pid: number
  readonly tid: number
  /** µs of CPU of the thread, and of the clock. */
  readonly tdur?: number
  readonly dur?: number
  readonly args?: { readonly name?: string }
}

/** The longest task of the page's main thread during some work, in ms of its CPU time. */
export async function longestTaskDuring(
  browser: Browser,
  { page }: Tab,
  work: () => Promise<void>,
): Promise<number> {
  await browser.startTracing(page, { categories: ['toplevel', '__metadata'] })
  await work()
  const trace: unknown = JSON.parse((await browser.stopTracing()).toString())
  const events = (trace as { readonly traceEvents: readonly TraceEvent[] }).traceEvents // Chromium's form
  const isMain = new Set(
    events
      .filter(({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain')
      .map(({ pid, tid }) => `${pid} ${tid}`),
  )
  const tasks = events.filter(({ pid, tid }) => isMain.has(`${pid} ${tid}`))
  return tasks.reduce((most, { tdur, dur }) => Math.max(most, tdur ?? dur ?? 0), 0) / 1000
}

/** A fixed piece of work of scripts, elements and layout, by which figures of different machines are compared. */
const CALIBRATION = `new Promise((done) => setTimeout(() => {
  let hash = 0
  for (let i = 0; i < 3_000_000; i++) hash = (Math.imul(hash, 31) + i) | 0
  const box = document.createElement('div')
  for (let i = 0; i < 1000; i++) {
    const row = document.createElement('div')
    row.textContent = 'row ' + i + ' ' + hash
    box.append(row)
  }
  document.body.append(box)
  box.getBoundingClientRect()
  box.remove()
  done()
}))`

/** CPU ms of the calibration's task on an empty page: the least of some, since other work only adds to it. */
export async function calibrate(browser: Browser, tab: Tab): Promise<number> {
  await tab.page.goto('about:blank')
  const times: number[] = []
  for (let i = 0; i < 7; i++)
    times.push(
      await longestTaskDuring(browser, tab, async () => {
        await tab.page.evaluate(CALIBRATION)
      }),
    )
  return Math.min(...times)
}
