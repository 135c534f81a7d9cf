import { test } from 'tap'
import { alertsFor, type AlertedAnomaly } from '../../../src/insights/alert-of.js'
import { continued } from '../../../src/insights/continued.js'
import type { InsightAnomaly } from '../../../src/model/insights.js'
import { HOUR_MS } from '../../../src/model/time.js'

const NOW = 500_000 * HOUR_MS

const anomaly = (fields: Partial<AlertedAnomaly> = {}): AlertedAnomaly => ({
  id: 'a',
  scope: 'source',
  kind: 'spike',
  state: 'ongoing',
  source: 'web',
  severity: null,
  templateId: null,
  startedAtMs: NOW - 5 * HOUR_MS,
  endedAtMs: NOW,
  detectedAtMs: NOW - 4 * HOUR_MS,
  observed: 900,
  expected: 100,
  expectedLeast: 60,
  expectedMost: 150,
  score: 12,
  partOf: null,
  alertedAtMs: 0,
  ...fields,
})
const RULES = { leastScore: 10, holdDownMs: 6 * HOUR_MS, nowMs: NOW }
const told = (...all: AlertedAnomaly[]): string[] =>
  alertsFor(all, RULES, () => 'disk <*> is full').map(
    ({ severity, title }) => `${severity} ${title}`,
  )

test('a grave anomaly is told with what was observed and expected', async (t) => {
  t.same(told(anomaly()), [
    'P3 Spike of all messages in web: 900 occurrences since ' +
      `${new Date(NOW - 5 * HOUR_MS).toISOString().slice(0, 16)}Z, 60 to 150 were expected`,
  ])
  t.match(told(anomaly({ scope: 'template', templateId: 'x' })), [/Spike of "disk <\*> is full"/])
})

test('what is slight, old, part of another or told before is not told', async (t) => {
  t.same(told(anomaly({ score: 9.9 })), [])
  t.same(told(anomaly({ endedAtMs: NOW - 25 * HOUR_MS })), [])
  t.same(told(anomaly({ partOf: 'b' })), [])
  t.same(told(anomaly({ alertedAtMs: 1 })), [])
})

test('a series is told of once within the hold-down, and again after it', async (t) => {
  const before = anomaly({ id: 'b', alertedAtMs: NOW - HOUR_MS })
  t.same(told(anomaly(), before), [])
  t.equal(told(anomaly(), { ...before, alertedAtMs: NOW - 7 * HOUR_MS }).length, 1)
  t.equal(told(anomaly(), { ...before, source: 'db' }).length, 1, 'another source')
  t.equal(told(anomaly(), anomaly({ id: 'c', score: 11 })).length, 1, 'two at once')
  t.equal(told(anomaly(), anomaly({ id: 'c', kind: 'drop' })).length, 2, 'the other way')
})

test('silent sources and CRITICAL in great numbers are P1', async (t) => {
  const priority = (fields: Partial<AlertedAnomaly>): string | undefined =>
    told(anomaly(fields))[0]?.slice(0, 2)
  t.equal(priority({ kind: 'silence' }), 'P1')
  t.equal(priority({ scope: 'severity', severity: 'CRITICAL' }), 'P1')
  t.equal(priority({ scope: 'severity', severity: 'ERROR' }), 'P2')
  t.equal(priority({ kind: 'drop' }), 'P2')
  t.equal(priority({ scope: 'template', templateId: 'x', kind: 'silence' }), 'P3')
})

test('an anomaly whose beginning moved keeps its id, and its parts follow', async (t) => {
  const known = [anomaly({ id: 'known', startedAtMs: NOW - 6 * HOUR_MS })]
  const found: InsightAnomaly[] = [
    anomaly({ id: 'new', startedAtMs: NOW - 4 * HOUR_MS }),
    anomaly({ id: 'part', scope: 'template', templateId: 'x', partOf: 'new' }),
    anomaly({ id: 'other', source: 'db' }),
  ]
  t.match(continued(found, known), [
    { anomaly: { id: 'known', startedAtMs: NOW - 6 * HOUR_MS }, known: { id: 'known' } },
    { anomaly: { id: 'part', partOf: 'known' }, known: null },
    { anomaly: { id: 'other' }, known: null },
  ])
})
