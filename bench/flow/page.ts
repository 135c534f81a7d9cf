import { type BenchOptions, settingsOf } from '../lib/options.js'
import type { ScenarioResult } from '../lib/report.js'
import { startService } from '../lib/service.js'
import { calibrate, hasBrowser, openBrowser, openTab } from '../page/browser.js'
import { createFigures } from '../page/figures.js'
import { measureFollowing } from '../page/following.js'
import { measureHostileRows } from '../page/hostile-rows.js'
import { measureLongList, sendLog } from '../page/long-list.js'
import { measureLongUse } from '../page/long-use.js'
import { measureOpening, measureTyping } from '../page/opening.js'

/** Measures the web page in Chromium: opening, typing, a list of all events, a fast tail, and rows that could block it. */
export async function runPage(options: BenchOptions): Promise<ScenarioResult> {
  const { events, durationS } = options
  const spanMs = durationS * 30_000
  const facts = { events, 'tail seconds': spanMs / 1000 }
  const figures = createFigures()
  const { metrics, checks } = figures
  const result = { scenario: 'page', options: facts, metrics, checks, curves: [] }
  if (!hasBrowser()) return { ...result, skipped: ['there is no Chromium; CHROMIUM names one'] }
  const service = await startService({
    settings: { ...settingsOf(options), MAX_MESSAGE_BYTES: '2097152' },
    profileDir: options.cpuProf,
  })
  const browser = await openBrowser()
  try {
    const part = (name: string): void => void process.stderr.write(`page: ${name}\n`)
    part(`sends ${events} events`)
    await sendLog(service, events)
    part('calibration')
    const idle = await openTab(browser, service)
    figures.add('calibration: CPU of a fixed task', 'ms', await calibrate(browser, idle))
    await idle.close()
    part('opening')
    await measureOpening(browser, service, figures)
    part('typing')
    await measureTyping(browser, service, figures)
    part('a long list')
    await measureLongList(browser, service, { events, figures })
    part('hostile rows')
    await measureHostileRows(browser, service, figures)
    part('long use')
    await measureLongUse(browser, service, figures)
    part('a fast tail')
    await measureFollowing(browser, service, { spanMs, figures })
  } finally {
    await browser.close()
    await service.stop()
    service.discard()
  }
  return { ...result, skipped: [] }
}
