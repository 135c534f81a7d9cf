import { setTimeout as sleep } from 'node:timers/promises'
import type { Browser } from 'playwright-core'
import { Connection } from '../lib/connection.js'
import type { Service } from '../lib/service.js'
import { send } from '../flow/steady-sender.js'
import { longestTaskDuring, openTab, until } from './browser.js'
import type { Figures } from './figures.js'

const attributes = (n: number) =>
  Object.fromEntries(Array.from({ length: n }, (_, i) => [`field_${i}`, `value ${i}`]))

const ROWS = [
  { name: 'a line of 1 MB', message: `begin ${'x'.repeat(1_000_000)}`, tags: {} },
  { name: '10,000 attributes', message: 'many attributes', tags: attributes(10_000) },
  {
    name: 'deep attributes',
    message: 'deep',
    tags: JSON.parse(`${'{"a":'.repeat(30)}1${'}'.repeat(30)}`),
  },
  { name: 'right to left', message: '\u202Eright to left\u202C \u2067שלום\u2069 ', tags: {} },
  { name: 'colours of terminals', message: '\u001B[31mred\u001B[0m '.repeat(5000), tags: {} },
  {
    name: 'scripts',
    message: '</pre><script>evil=1</script><img src=x onerror=evil=1> '.repeat(200),
    tags: {},
  },
] as const

/** Measures the longest task when rows that could block a page are listed and opened. */
export async function measureHostileRows(
  browser: Browser,
  service: Service,
  { add, check }: Figures,
): Promise<void> {
  const connection = new Connection(service.collector)
  for (const { message, tags } of ROWS) {
    const line = JSON.stringify({ source: 'hostile', severity: 'error', message, tags })
    await send(connection, service, [line])
    await sleep(5)
  }
  connection.close()
  await sleep(3000)
  const tab = await openTab(browser, service)
  const { page } = tab
  await page.goto(`${service.api}/explore?from=now-1h&q=source:nothing`)
  await page.waitForSelector('.found.empty')
  const listed = await longestTaskDuring(browser, tab, async () => {
    await page.fill('textarea[aria-label=Query]', 'source:hostile')
    await page.keyboard.press('Enter')
    await until(page, 'hasRows()')
    await sleep(500)
  })
  add('hostile rows listed: longest task, CPU', 'ms', listed, { goal: 16 })
  const rows = await page.locator('.events .row').count()
  check('hostile rows are listed', rows === ROWS.length, `${rows} of ${ROWS.length}`)
  await page.locator('.events').focus()
  for (let i = 0; i < ROWS.length; i++) {
    const { name = '' } = ROWS.at(-1 - i) ?? {}
    const opened = await longestTaskDuring(browser, tab, async () => {
      await page.keyboard.press('j')
      if (i === 0) await page.keyboard.press('Enter')
      await page.waitForSelector('.detail .field-rows')
      await sleep(500)
    })
    add(`opened, ${name}: longest task, CPU`, 'ms', opened, { goal: 16 })
  }
  const evil = await page.evaluate<string>('typeof evil')
  check('nothing of theirs is run', evil === 'undefined', evil)
  await tab.close()
}
