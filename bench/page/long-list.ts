import { setTimeout as sleep } from 'node:timers/promises'
import type { Browser, Page } from 'playwright-core'
import { Connection } from '../lib/connection.js'
import type { Service } from '../lib/service.js'
import { send } from '../flow/steady-sender.js'
import { longestTaskDuring, openTab, usageOf, until } from './browser.js'
import type { Figures } from './figures.js'

const BODY_EVENTS = 5000
const PLACES = 40
const TURNS = 60

/** Event i of the log; its time and text are functions of i. */
const lineOf = (i: number, startMs: number): string =>
  JSON.stringify({
    source: `load-${i % 8}`,
    host: `web-${i % 20}`,
    severity: ['info', 'info', 'info', 'debug', 'warning', 'info', 'error'][i % 7],
    timestamp: new Date(startMs + i * STEP_MS).toISOString(),
    message: `row ${i} of the log took ${i % 1000} ms`,
    tags: { user: { id: i % 977 }, duration_ms: i % 1000 },
  })

/** No two events have the same time. */
const STEP_MS = 3

export async function sendLog(service: Service, events: number): Promise<void> {
  const startMs = Date.now() - events * STEP_MS - 60_000
  const connection = new Connection(service.collector)
  for (let first = 0; first < events; first += BODY_EVENTS) {
    const length = Math.min(BODY_EVENTS, events - first)
    const lines = Array.from({ length }, (_, i) => lineOf(first + i, startMs))
    await send(connection, service, lines)
  }
  connection.close()
  await sleep(5000)
}

/** A rendered row: its position in the list, and the number in its message. */
type Drawn = readonly [place: number, number: number]

const DRAWN = `[...document.querySelectorAll('.events .row:not(.waiting)')].map((row) =>
  [Number(row.dataset.index), Number(/row (\\d+) of/.exec(row.textContent)?.[1] ?? -1)])`

async function goTo(page: Page, share: number): Promise<readonly Drawn[]> {
  await page.evaluate(`{
    const list = document.querySelector('.events')
    list.scrollTop = ${share} * (list.scrollHeight - list.clientHeight)
  }`)
  await page.evaluate(
    `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`,
  )
  await until(
    page,
    `document.querySelectorAll('.events .row').length > 0 && document.querySelector('.events .row.waiting') === null`,
  )
  return page.evaluate<readonly Drawn[]>(DRAWN)
}

/** Checks that any position of a list of all events has the right rows, and measures the cost of scrolling. */
export async function measureLongList(
  browser: Browser,
  service: Service,
  { events, figures: { add, check } }: { readonly events: number; readonly figures: Figures },
): Promise<void> {
  const tab = await openTab(browser, service)
  const { page } = tab
  await page.goto(`${service.api}/explore?from=now-24h&q=source:load-*`)
  await until(page, 'seen.rowsMs > 0')
  // Rows are shown before they are counted.
  await until(page, `document.querySelector('.events').ariaLabel !== 'Events: 200'`)
  const label = await page.getAttribute('.events', 'aria-label')
  check('all events are listed', label?.replaceAll(/\D/g, '') === String(events), `${label}`)
  let wrong = 0
  let seen = 0
  let mostNodes = 0
  const longest = await longestTaskDuring(browser, tab, async () => {
    for (let i = 0; i < PLACES; i++) {
      // The golden ratio visits all parts of the list; the ends come first.
      const share = i < 2 ? i : (i * 0.618_034) % 1
      const drawn = await goTo(page, share)
      seen += drawn.length
      wrong += drawn.filter(([place, number]) => number !== events - 1 - place).length
      const nodes = await page.evaluate<number>(`document.querySelectorAll('*').length`)
      mostNodes = Math.max(mostNodes, nodes)
    }
    await page.hover('.events')
    for (let i = 0; i < TURNS; i++) {
      await page.mouse.wheel(0, 700)
      await sleep(30)
    }
  })
  check(
    'the right row at any place',
    wrong === 0 && seen > PLACES * 20,
    `${wrong} of ${seen} are others`,
  )
  add('list: longest task, CPU', 'ms', longest, { goal: 50 })
  add('list: elements of the page', '', mostNodes, { goal: 2000 })
  add('list: heap', 'MB', (await usageOf(tab)).heapBytes / 1e6, { goal: 80 })
  await tab.close()
}
