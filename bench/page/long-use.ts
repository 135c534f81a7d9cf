import { setTimeout as sleep } from 'node:timers/promises'
import type { Browser } from 'playwright-core'
import type { Service } from '../lib/service.js'
import { openTab, until, usageOf } from './browser.js'
import type { Figures } from './figures.js'

const ROUNDS = 30
const WARM_ROUNDS = 10
const SCREENS = ['templates', 'live', 'overview', 'alerts', 'insights', 'sources', 'explore']

/** A day's work in one tab: searches, opened events, all screens by their keys. Memory should return to its initial size. */
export async function measureLongUse(
  browser: Browser,
  service: Service,
  { add }: Figures,
): Promise<void> {
  const tab = await openTab(browser, service)
  const { page } = tab
  await page.goto(`${service.api}/explore?from=now-24h`)
  await until(page, 'hasRows()')
  const work = async (round: number): Promise<void> => {
    await page.fill('textarea[aria-label=Query]', `source:load-${round % 8}`)
    await page.keyboard.press('Enter')
    await page.keyboard.press('Escape')
    const isFound = `document.querySelector('.events .row')?.textContent.includes('load-${round % 8}')`
    await until(page, `hasRows() && ${isFound}`)
    await page.locator('.events').focus()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.locator('.detail .field-rows').first().waitFor()
    for (let i = 0; i < 10; i++) await page.keyboard.press('j')
    await page.keyboard.press('Escape')
    for (const screen of SCREENS) {
      await page.click(`nav a[href^="/${screen}"]`)
      await page.locator('.screen').first().waitFor()
      await sleep(30)
    }
    await until(page, 'hasRows()')
  }
  for (let i = 0; i < WARM_ROUNDS; i++) await work(i)
  const before = await usageOf(tab)
  for (let i = 0; i < ROUNDS; i++) await work(i)
  const after = await usageOf(tab)
  add(`after ${ROUNDS} rounds of all screens: heap`, 'MB', after.heapBytes / 1e6)
  add('… growth of the heap', 'MB', (after.heapBytes - before.heapBytes) / 1e6)
  add('… growth of elements', '', after.nodes - before.nodes)
  add('… growth of listeners', '', after.listeners - before.listeners)
  await tab.close()
}
