import { setTimeout as sleep } from 'node:timers/promises'
import type { Browser, Page } from 'playwright-core'
import { median } from '../lib/report.js'
import type { Service } from '../lib/service.js'
import { openTab, until } from './browser.js'
import type { Figures } from './figures.js'

const TIMES = 5
/** A slow office line: 10 Mbit/s, and a phone's CPU. */
const SLOW = { latency: 20, downloadThroughput: 1_250_000, uploadThroughput: 1_250_000 }

/** Measures the time from opening the address to the first paint and to the painted rows, with an empty cache. */
export async function measureOpening(
  browser: Browser,
  service: Service,
  { add }: Figures,
): Promise<void> {
  for (const isSlow of [false, true]) {
    const paints: number[] = []
    const rows: number[] = []
    for (let i = 0; i < TIMES; i++) {
      const tab = await openTab(browser, service)
      if (isSlow) {
        await tab.cdp.send('Network.emulateNetworkConditions', { offline: false, ...SLOW })
        await tab.cdp.send('Emulation.setCPUThrottlingRate', { rate: 4 })
      }
      await tab.page.goto(`${service.api}/explore?from=now-2h`)
      await until(tab.page, 'seen.rowsMs > 0')
      paints.push(
        await tab.page.evaluate<number>(
          `performance.getEntriesByName('first-contentful-paint')[0].startTime`,
        ),
      )
      rows.push(await tab.page.evaluate<number>('seen.rowsMs'))
      await tab.close()
    }
    const how = isSlow ? ', CPU ÷ 4 and 10 Mbit/s' : ''
    if (!isSlow) add('first paint', 'ms', median(paints), { goal: 200 })
    add(`rows painted${how}`, 'ms', median(rows), { goal: isSlow ? 900 : 350 })
  }
}

const TEXT = 'severity:error source:load-1 "row" duration_ms>100 -host:web-7 user.id:42'

/** Measures the delay from keys in the query bar to their paint, and from Enter to the rows beside that of the API. */
export async function measureTyping(
  browser: Browser,
  service: Service,
  { add }: Figures,
): Promise<void> {
  const tab = await openTab(browser, service)
  const { page } = tab
  await page.goto(`${service.api}/explore?from=now-2h`)
  await until(page, 'seen.rowsMs > 0')
  await page.keyboard.press('/')
  await page.keyboard.type(TEXT, { delay: 60 })
  await sleep(500)
  const waits = await page.evaluate<readonly number[]>('[...seen.keys.values()]')
  // Keys that are painted within 16 ms are not listed.
  const all = [...waits, ...Array.from({ length: TEXT.length }, () => 16)]
    .slice(0, TEXT.length)
    .toSorted((a, b) => a - b)
  add('key to its paint, p98', 'ms', all[Math.ceil(all.length * 0.98) - 1] ?? 0, { goal: 100 })
  // Neighbouring queries have different counts, which identify the new result.
  const extra: number[] = []
  for (const severity of ['error', 'info', 'warning', 'info', 'debug']) {
    await page.fill('textarea[aria-label=Query]', `severity:${severity}`)
    await sleep(300)
    extra.push(await rowsBesideApi(page))
  }
  add('rows painted after the API’s answers', 'ms', median(extra), { goal: 50 })
  await tab.close()
}

/** The time from Enter to the painted rows, less that of the request. */
async function rowsBesideApi(page: Page): Promise<number> {
  await page.evaluate(`
    performance.clearResourceTimings()
    window.enter = new Promise((resolve) => addEventListener('keydown', ({ key, timeStamp }) => {
      if (key !== 'Enter') return
      const label = () => document.querySelector('.events')?.getAttribute('aria-label')
      const before = label()
      resolve(whenPainted(() => label() !== before && hasRows()).then((ms) => ms - timeStamp))
    }, { once: true, capture: true }))
    undefined
  `)
  await page.keyboard.press('Enter')
  const wholeMs = await page.evaluate<number>('window.enter')
  const apiMs = await page.evaluate<number>(`
    performance.getEntriesByType('resource')
      .filter(({ name }) => /[/]api[/]logs[?]/.test(name))
      .reduce((sum, { duration }) => sum + duration, 0)
  `)
  return wholeMs - apiMs
}
