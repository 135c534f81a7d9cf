import { test } from 'tap'
import { findingsOf } from '../../../src/insights/findings.js'
import { trackAnomalies } from '../../../src/insights/anomaly-tracking.js'
import type { StoredAnomaly } from '../../../src/insights/store.js'
import type { Source } from '../../../src/records/sources.js'
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
  ...fields,
})
/** The sources web and db were registered six hours ago. */
const sourceOf = (name: string): Source => ({
  name,
  type: 'push',
  connector: 'http',
  enabled: true,
  applicationId: null,
  createdAtMs: NOW - 6 * HOUR_MS,
})
const SOURCES = new Map(['web', 'db'].map((name) => [name, sourceOf(name)]))
const deps = {
  sources: { get: (name: string) => SOURCES.get(name), list: () => [...SOURCES.values()] },
  textOf: () => 'disk <*> is full',
}
const found = (...all: StoredAnomaly[]): string[] =>
  findingsOf(all, deps).map(({ priority, gravity, title }) => `${priority} ${gravity} ${title}`)

test('a finding says what was observed and expected', async (t) => {
  t.same(found(anomaly()), [
    'P3 12 Spike of all messages in web: 900 occurrences since ' +
      `${new Date(NOW - 5 * HOUR_MS).toISOString().slice(0, 16)}Z, 60 to 150 were expected`,
  ])
  const [ofTemplate] = found(anomaly({ scope: 'template', templateId: 'x' }))
  t.match(ofTemplate, /Spike of "disk <\*> is full" in web/)
})

test('a leader is as grave as its group, and others are no findings', async (t) => {
  t.match(found(anomaly(), anomaly({ id: 'b', partOf: 'a', gravity: 30 })), [/^P3 30 /])
  t.equal(found(anomaly(), anomaly({ id: 'b', partOf: 'a', gravity: 30 })).length, 1)
  t.match(found(anomaly(), anomaly({ id: 'b', gravity: 13 })), [/^P3 13 /, /^P3 12 /])
})

test('what began before its source was registered is of an uploaded past', async (t) => {
  t.same(found(anomaly({ startedAtMs: NOW - 7 * HOUR_MS })), [])
  t.same(found(anomaly({ source: 'gone' })), [])
  t.equal(found(anomaly({ source: '', scope: 'all' })).length, 1)
  t.same(found(anomaly({ source: '', scope: 'all', startedAtMs: NOW - 7 * HOUR_MS })), [])
})

test('silent sources and spikes of CRITICAL are P1', async (t) => {
  const priority = (fields: Partial<StoredAnomaly>): string | undefined =>
    found(anomaly(fields))[0]?.slice(0, 2)
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
