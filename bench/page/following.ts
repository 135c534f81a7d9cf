import { setTimeout as sleep } from 'node:timers/promises'
import type { Browser, Page } from 'playwright-core'
import { field, listField, numberField } from '../lib/api.js'
import type { Service } from '../lib/service.js'
import { startSending } from '../flow/steady-sender.js'
import { longestTask, openTab, usageOf } from './browser.js'
import type { Figures } from './figures.js'

const RATE = 5000
const WARM_MS = 10_000

interface Counted {
  matched: number
  leftOut: number
  rows: number
}

/** Counts the messages on the page's sockets. */
function countMessages(page: Page): Counted {
  const counted: Counted = { matched: 0, leftOut: 0, rows: 0 }
  page.on('websocket', (socket) => {
    socket.on('framereceived', ({ payload }) => {
      if (typeof payload !== 'string' || !payload.includes('tail:rows')) return
      const message: unknown = JSON.parse(payload)
      if (field(message, 'type') !== 'tail:rows') return
      counted.matched += numberField(message, 'matched')
      counted.leftOut += numberField(message, 'left_out')
      counted.rows += listField(message, 'rows').length
    })
  })
  return counted
}

const lineOf = (i: number): string =>
  JSON.stringify({
    source: `tail-${i % 8}`,
    host: `web-${i % 20}`,
    severity: i % 10 === 0 ? 'error' : 'info',
    message: `order ${i} took ${i % 1000} ms for user ${i % 977}`,
  })

/** Measures the cost of a live tail of 5,000 events/s in the page, and checks that losses are reported. */
export async function measureFollowing(
  browser: Browser,
  service: Service,
  { spanMs, figures: { add, check } }: { readonly spanMs: number; readonly figures: Figures },
): Promise<void> {
  const tab = await openTab(browser, service)
  const { page } = tab
  const counted = countMessages(page)
  await page.goto(`${service.api}/live?q=source:tail-*`)
  await page.waitForSelector('.pulse.open')
  await sleep(1000)
  const sender = startSending(service, RATE, lineOf)
  await sleep(WARM_MS)
  const before = await usageOf(tab)
  await longestTask(tab)
  await sleep(spanMs)
  const longest = await longestTask(tab)
  const after = await usageOf(tab)
  await sender.stop()
  await sleep(5000)
  const shown = (await page.innerText('.totals')).replaceAll(',', '')
  const [matched = -1, leftOut = 0] = [/(\d+) events?/, /(\d+) left out/].map((pattern) =>
    Number(pattern.exec(shown)?.[1] ?? 0),
  )
  add('tail: longest task', 'ms', longest, { goal: 100 })
  add('tail: main thread', '% of a core', ((after.taskS - before.taskS) / (spanMs / 1000)) * 100, {
    goal: 35,
  })
  add('tail: heap', 'MB', after.heapBytes / 1e6)
  add('tail: growth of the heap', 'MB', (after.heapBytes - before.heapBytes) / 1e6)
  const text = `sent ${sender.sent}, told ${counted.matched}, received ${counted.rows}, left out ${counted.leftOut}; shown ${shown}`
  check(
    'received + left out = sent',
    counted.rows + counted.leftOut === sender.sent && counted.matched === sender.sent,
    text,
  )
  check('the page says so', matched === sender.sent && leftOut === counted.leftOut, text)
  await tab.close()
}
