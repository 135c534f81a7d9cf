import { test } from 'tap'
import { dueAlerts } from '../../../src/insights/alerts.js'
import { trackAnomalies } from '../../../src/insights/anomaly-tracking.js'
import type { StoredAnomaly } from '../../../src/insights/store.js'
import type { InsightAnomaly } from '../../../src/model/insights.js'
import { HOUR_MS } from '../../../src/model/time.js'

const NOW = 500_000 * HOUR_MS

const anomaly = (fields: Partial<StoredAnomaly> = {}): StoredAnomaly => ({
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
  gravity: 12,
  partOf: null,
  alertedAtMs: 0,
  ...fields,
})
const RULES = { leastGravity: 10, holdDownMs: 6 * HOUR_MS, nowMs: NOW }
const alertsOf = (...all: StoredAnomaly[]): string[] =>
  dueAlerts(all, RULES, () => 'disk <*> is full').map(
    ({ severity, title }) => `${severity} ${title}`,
  )

test('an alert of a grave anomaly says what was observed and expected', async (t) => {
  t.same(alertsOf(anomaly()), [
    'P3 Spike of all messages in web: 900 occurrences since ' +
      `${new Date(NOW - 5 * HOUR_MS).toISOString().slice(0, 16)}Z, 60 to 150 were expected`,
  ])
  t.match(alertsOf(anomaly({ scope: 'template', templateId: 'x' })), [
    /Spike of "disk <\*> is full"/,
  ])
})

test('slight and old anomalies, parts of others, and those with an alert raise none', async (t) => {
  t.same(alertsOf(anomaly({ gravity: 9.9 })), [])
  t.same(alertsOf(anomaly({ endedAtMs: NOW - 25 * HOUR_MS })), [])
  t.same(alertsOf(anomaly({ partOf: 'b' })), [])
  t.same(alertsOf(anomaly({ alertedAtMs: 1 })), [])
})

test('a series raises one alert within the hold-down, and another after it', async (t) => {
  const before = anomaly({ id: 'b', alertedAtMs: NOW - HOUR_MS })
  t.same(alertsOf(anomaly(), before), [])
  t.equal(alertsOf(anomaly(), { ...before, alertedAtMs: NOW - 7 * HOUR_MS }).length, 1)
  t.equal(alertsOf(anomaly(), { ...before, source: 'db' }).length, 1, 'another source')
  t.equal(alertsOf(anomaly(), anomaly({ id: 'c', gravity: 11 })).length, 1, 'two at once')
  t.equal(alertsOf(anomaly(), anomaly({ id: 'c', kind: 'drop' })).length, 2, 'the other way')
})

test('silent sources and spikes of CRITICAL are P1', async (t) => {
  const priority = (fields: Partial<StoredAnomaly>): string | undefined =>
    alertsOf(anomaly(fields))[0]?.slice(0, 2)
  t.equal(priority({ kind: 'silence' }), 'P1')
  t.equal(priority({ scope: 'severity', severity: 'CRITICAL' }), 'P1')
  t.equal(priority({ scope: 'severity', severity: 'ERROR' }), 'P2')
  t.equal(priority({ kind: 'drop' }), 'P2')
  t.equal(priority({ scope: 'template', templateId: 'x', kind: 'silence' }), 'P3')
})

test('an anomaly whose beginning moved keeps its id, and its group follows', async (t) => {
  const known = [anomaly({ id: 'known', startedAtMs: NOW - 6 * HOUR_MS })]
  const found: InsightAnomaly[] = [
    anomaly({ id: 'new', startedAtMs: NOW - 4 * HOUR_MS }),
    anomaly({ id: 'part', scope: 'template', templateId: 'x', partOf: 'new' }),
    anomaly({ id: 'other', source: 'db' }),
  ]
  t.match(trackAnomalies(found, known), [
    { anomaly: { id: 'known', startedAtMs: NOW - 6 * HOUR_MS }, known: { id: 'known' } },
    { anomaly: { id: 'part', partOf: 'known' }, known: null },
    { anomaly: { id: 'other' }, known: null },
  ])
})
