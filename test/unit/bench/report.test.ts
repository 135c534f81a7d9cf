import t from 'tap'
import { compareReports, renderComparison } from '../../../bench/lib/compare.js'
import { renderHtml } from '../../../bench/lib/html.js'
import { Latencies } from '../../../bench/lib/latency.js'
import {
  formatNumber,
  joinRuns,
  median,
  type Metric,
  renderText,
  type Report,
  type ScenarioResult,
} from '../../../bench/lib/report.js'

const result = (
  metrics: readonly Metric[],
  changes: Partial<ScenarioResult> = {},
): ScenarioResult => ({
  scenario: 'ingest',
  options: { events: 10 },
  metrics,
  checks: [],
  skipped: [],
  curves: [],
  ...changes,
})

const report = (...metrics: readonly Metric[]): Report => ({
  version: 1,
  startedAt: '2026-05-03T10:00:00.000Z',
  command: 'npm run bench',
  machine: 'a machine',
  node: 'v20',
  scenarios: [result(metrics)],
})

const metric = (better: Metric['better'], ...samples: readonly number[]): Metric => ({
  name: 'speed',
  unit: '1/s',
  samples,
  better,
})

t.test('a difference counts only when it is larger than the spread of both sides', async (t) => {
  const verdict = (before: Metric, after: Metric): string | undefined =>
    compareReports(report(before), report(after))[0]?.verdict

  t.equal(verdict(metric('higher', 99, 100, 101), metric('higher', 119, 120, 121)), 'better')
  t.equal(verdict(metric('lower', 99, 100, 101), metric('lower', 119, 120, 121)), 'worse')
  t.equal(verdict(metric('lower', 119, 120, 121), metric('lower', 99, 100, 101)), 'better')
  t.equal(verdict(metric('info', 99, 100, 101), metric('info', 119, 120, 121)), 'changed')
  t.equal(verdict(metric('higher', 70, 100, 130), metric('higher', 119, 120, 121)), 'same')
  t.equal(verdict(metric('higher', 100), metric('higher', 110)), 'same', 'one run says little')
  t.equal(verdict(metric('higher', 100), metric('higher', 140)), 'better')
  t.equal(verdict(metric('lower', 0), metric('lower', 0)), 'same')
  t.equal(verdict(metric('lower', 0), metric('lower', 3)), 'worse')
})

t.test('a comparison leaves out what only one side has, and names the rest', async (t) => {
  const other = { ...metric('lower', 5), name: 'only before' }
  const differences = compareReports(
    report(metric('higher', 100), other),
    report(metric('higher', 200)),
  )
  t.equal(differences.length, 1)
  const text = renderComparison(differences)
  t.match(text, /^better +2\.00 x .*ingest: speed/)
  t.match(text, '0 of 1 figures are the same within noise')
})

t.test('runs are joined sample by sample, and a check that failed once stays', async (t) => {
  const good = { name: 'sum', ok: true, detail: '10' }
  const bad = { name: 'sum', ok: false, detail: '9 instead of 10' }
  const joined = joinRuns([
    result([metric('higher', 1)], { checks: [good], skipped: ['a'] }),
    result([metric('higher', 3)], { checks: [bad], skipped: ['a'] }),
  ])
  t.same(joined.metrics[0]?.samples, [1, 3])
  t.same(joined.skipped, ['a'])
  const text = renderText({ ...report(), scenarios: [joined] })
  t.match(text, 'WRONG sum: 9 instead of 10')
  t.match(text, '1 checks hold: sum')
})

t.test('the median of an even number of samples lies between the middle two', async (t) => {
  t.equal(median([9, 1, 2]), 2)
  t.equal(median([4, 1, 3, 2]), 2.5)
})

t.test('numbers show three digits or more', async (t) => {
  t.same([1234.6, 123.46, 12.346, 1.2346, 0.12346].map(formatNumber), [
    '1,235',
    '123',
    '12.3',
    '1.23',
    '0.123',
  ])
})

t.test('latencies keep three digits and pass between processes', async (t) => {
  const latencies = new Latencies()
  for (let ms = 1; ms <= 1000; ms++) latencies.record(ms)
  const copy = new Latencies(latencies.encoded())
  t.equal(copy.count, 1000)
  t.ok(Math.abs(copy.at(50) - 500) < 1, `${copy.at(50)}`)
  t.ok(Math.abs(copy.at(99) - 990) < 1, `${copy.at(99)}`)
})

t.test('the page needs no other file and takes names literally', async (t) => {
  const named = { ...metric('higher', 1, 2), name: '<script>x</script> & co' }
  const page = renderHtml(report(named, metric('higher', 3)))
  t.notMatch(page, '<script>')
  t.match(page, '&lt;script&gt;x&lt;/script&gt; &amp; co')
  t.notMatch(page, /(src|href)=/)
  t.match(page, '<svg')
})
