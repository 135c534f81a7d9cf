import type { Page } from 'playwright-core'
import type { Test } from 'tap'

import type { LiveService } from './live-service.js'
import { axe, param, text } from './page.js'

/** What operators do beside searching: incidents, insights, administration. */
export async function operate(t: Test, page: Page, service: LiveService): Promise<void> {
  await incidents(t, page, service)
  await insights(t, page, service)
  await administration(t, page, service)
}

async function incidents(t: Test, page: Page, service: LiveService): Promise<void> {
  t.comment('an incident from a selection, by keyboard')
  await page.goto(`${service.api}/incidents`)
  await page.waitForSelector('.nothing:has-text("No incident")')
  t.same(await axe(page), [])
  await page.goto(`${service.api}/explore?from=now-2h&q=severity:error+source:payments`)
  await page.waitForSelector('.events .row.error')
  await page.locator('.events').focus()
  await page.keyboard.press('j')
  await page.keyboard.press('i')
  await page.waitForSelector('dialog.modal[open] input[name=title]')
  t.match(await page.inputValue('input[name=title]'), /connection pool exhausted/)
  t.same(await axe(page), [])
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/incidents\/[0-9a-f-]{36}$/)
  const id = new URL(page.url()).pathname.split('/').at(-1)
  await page.waitForSelector('.evidence code:has-text("severity:error source:payments")')
  t.same(await axe(page), [])
  const stored = (await service.call(`GET /api/incidents/${id}`)).body
  t.match(stored, { status: 'open', source: 'payments', evidence: [{ count: Number }] })
  t.equal(stored.event_ids.length, 1)

  t.comment('it is worked on')
  await page.click('text=Acknowledge')
  await page.waitForSelector('.state.acknowledged')
  await page.click('text=Take it')
  await page.fill('.note-form textarea', 'the pool is dry\n<b data-evil>')
  await page.click('text=Add note')
  await page.waitForSelector('.timeline p:has-text("the pool is dry")')
  t.equal(await page.locator('[data-evil]').count(), 0)
  await page.click('.evidence a')
  await page.waitForSelector('.events .row.error')
  t.equal(param(page, 'q'), 'severity:error source:payments')
  t.match(param(page, 'from'), /^2/, 'the span is frozen')
  await page.goto(`${service.api}/incidents`)
  await page.waitForSelector('.incident-card:has-text("you")')
  t.same(await axe(page), [])
}

async function insights(t: Test, page: Page, service: LiveService): Promise<void> {
  t.comment('Insights')
  await service.call('POST /api/ai-insights/snapshot/refresh')
  await page.goto(`${service.api}/insights`)
  await page.waitForSelector('.learning')
  t.same(await axe(page), [])
  await page.click('[aria-label="A day earlier"]')
  await page.waitForURL(/at=2/)
  await page.waitForSelector('text=No analysis of this time yet')
}

async function administration(t: Test, page: Page, service: LiveService): Promise<void> {
  t.comment('Admin')
  await page.goto(`${service.api}/admin`)
  await page.waitForSelector('.tile:has-text("ClickHouse")')
  t.same(await axe(page), [])
  await page.click('.tabs >> text=Users')
  await page.click('text=Add a user')
  await page.fill('dialog input[name=email]', 'ann@example.com')
  await page.fill('dialog input[name=password]', 'short')
  await page.keyboard.press('Enter')
  await page.waitForSelector('dialog .problem')
  await page.fill('dialog input[name=password]', 'a rather long first password 42')
  await page.keyboard.press('Enter')
  await page.waitForSelector('tr:has-text("ann@example.com"):has-text("temporary")')
  t.same(await axe(page), [])
  await page.click('tr:has-text("ann@example.com") >> text=Delete …')
  await page.click('text=Delete the user')
  await page.waitForSelector('tr:has-text("ann@example.com")', { state: 'detached' })
  await page.click('.tabs >> text=Audit')
  await page.click('tr:has-text("deleteUser") .link >> nth=1')
  await page.waitForURL(/action=deleteUser/)
  t.same(await axe(page), [])
  await page.click('.tabs >> text=Your sessions')
  await page.waitForSelector('tr:has-text("this one")')
  t.match(await text(page, 'tr:has-text("this one")'), /Chrom/)
  t.same(await axe(page), [])
}
