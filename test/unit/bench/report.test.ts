import t from 'tap'
import { compareReports, renderComparison } from '../../../bench/lib/compare.js'
import { renderHtml } from '../../../bench/lib/html.js'
import { Latencies } from '../../../bench/lib/latency.js'
import {
  formatNumber,
  joinRuns,
  median,
  type Metric,
  ratioToLimit,
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
    compareReports(report(before), report(after))[0]?.differences[0]?.verdict

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
  const compared = compareReports(
    report(metric('higher', 100), other),
    report(metric('higher', 200)),
  )
  t.equal(compared[0]?.differences.length, 1)
  const text = renderComparison(compared)
  t.match(text, /^== ingest\n +better +2\.00 x .* speed, 100 -> 200 1\/s/)
  t.match(text, '0 of 1 figures are the same within noise')
  t.match(text, '1 figures are on one side only')
  const none = { ...report(), scenarios: [] }
  t.match(renderComparison(compareReports(none, report())), 'no scenario in common')
})

const of = (events: number, ...metrics: readonly Metric[]): Report => ({
  ...report(),
  scenarios: [result(metrics, { options: { events, seed: events } })],
})

t.test('two numbers of events are compared as growth, not as versions', async (t) => {
  const named = (name: string, ms: number): Metric => ({ ...metric('lower', ms), name, unit: 'ms' })
  const small = of(1e6, named('newest', 10), named('rare', 10), named('limit: least', 1))
  const large = of(1e8, named('newest', 19), named('rare', 21), named('limit: least', 9))
  const text = renderComparison(compareReports(small, large))
  t.match(text, '== ingest: 1,000,000 -> 100,000,000 events')
  t.match(text, 'other options: seed 1000000 -> 100000000')
  t.match(text, /2\.10 x > 2 x +rare, 10\.0 -> 21\.0 ms/)
  t.match(text, /1\.90 x +newest, 10\.0 -> 19\.0 ms/)
  t.match(text, 'ms: 1 of 2 grew more than 2 x')
  t.notMatch(text, 'worse')
  const little = renderComparison(compareReports(small, of(1.1e6, named('newest', 30))))
  t.match(little, /worse +3\.00 x/)
})

t.test('a figure is told as a multiple of its limit, run by run', async (t) => {
  const limit: Metric = { name: 'limit: parse', unit: 's', samples: [1, 2], better: 'info' }
  const against = { metric: 'limit: parse', label: 'parse' }
  const figure = { ...metric('lower', 3, 6), limit: against }
  t.equal(ratioToLimit(figure, [limit, figure]), 3)
  t.equal(ratioToLimit(figure, [figure]), null, 'the limit was not measured')
  t.match(renderText(of(1, limit, figure)), /speed +4\.50 1\/s +3\.00 \.\. 6\.00 +3\.00 x parse/)
  t.match(renderHtml(of(1, limit, figure)), '<td>3.00 x parse</td>')

  const slower = { ...figure, samples: [6, 12] }
  const twice = { ...limit, samples: [2, 4] }
  const text = renderComparison(compareReports(of(1, limit, figure), of(1, twice, slower)))
  t.match(text, /2\.00 x \(.*to its limit 1\.00 x\) +speed/, 'the machine was slower')
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
