import { test } from 'tap'
import { generate } from '../../../bench/insights/generate.js'
import { seeded } from '../../../bench/insights/random.js'
import { simulate } from '../../../bench/insights/simulate.js'
import { Analysis, type AnalysedTemplate } from '../../../src/insights/analysis.js'
import { forecastNext } from '../../../src/insights/forecast.js'
import { frameEndingAt } from '../../../src/insights/frame.js'
import { SEVERITIES } from '../../../src/model/event.js'
import type { InsightAnomaly, InsightSnapshot } from '../../../src/model/insights.js'
import { HOUR_MS } from '../../../src/model/time.js'

const FRAME = frameEndingAt(20_000 * 24 + 15)
const { hours } = FRAME
const NONE = new Float64Array(hours)

const wavering = (seed: number, meanAt: (hour: number) => number): Float64Array => {
  const random = seeded(seed)
  return Float64Array.from({ length: hours }, (_, hour) =>
    Math.round(meanAt(hour) * (0.9 + 0.2 * random())),
  )
}

const template = (templateId: string, counts: Float64Array): AnalysedTemplate => ({
  templateId,
  source: 'web',
  severity: 'ERROR',
  counts,
  firstSeenMs: FRAME.startHour * HOUR_MS,
  lastSeenMs: (FRAME.startHour + hours) * HOUR_MS,
  routine: 10,
  routineEvents: 10,
  unsureEvents: 1,
})

const FACTS = { dataAgeHours: 0, corrections: 0, agreeing: 0 }
/** A web server whose errors soar for the last four hours, by one template of two, and a quiet neighbour. */
function example(): InsightSnapshot {
  const analysis = new Analysis(FRAME, hours)
  const soaring = wavering(2, (hour) => 20 + (hour >= hours - 4 ? 900 : 0))
  const steady = wavering(3, () => 20)
  const errors = soaring.map((count, i) => count + (steady[i] ?? 0))
  const info = wavering(1, () => 1000)
  analysis.addSource({ source: 'web', severities: [NONE, info, NONE, errors, NONE] })
  const quiet = [NONE, wavering(4, () => 500), NONE, NONE, NONE]
  analysis.addSource({ source: 'db', severities: quiet })
  analysis.addTemplate(template('00000000000000aa', soaring))
  analysis.addTemplate(template('00000000000000bb', steady))
  const anomalies = analysis.group()
  return analysis.snapshot({ ...FACTS, anomalies, correlations: [] })
}

test('a soaring template is part of the errors of its source', async (t) => {
  const { anomalies, templates, health } = example()
  const [first] = anomalies
  t.match(first, { scope: 'severity', severity: 'ERROR', source: 'web', state: 'ongoing' })
  t.match(
    anomalies.find(({ scope }) => scope === 'template'),
    {
      templateId: '00000000000000aa',
      partOf: first?.id,
    },
  )
  t.match(templates, [{ change: 'grown', templateId: '00000000000000aa' }])
  t.match(health, { lowConfidence: 0.1, drift: 0, dataAgeHours: 0 })
})

test('a clock that was shifted is that of all templates of its source, also of those with few messages', async (t) => {
  const weeks = { seed: 21, sources: 12, weeks: 11, quietWeeks: 5 }
  const { templates = [], labels = [] } = simulate(weeks)[6] ?? {}
  const shifted = labels.find(({ kind }) => kind === 'clock_shifted')?.to ?? 0
  const startHour = 2500 * 168 + 96
  const frame = frameEndingAt(startHour + shifted + 48)
  const cut = (counts: Float64Array): Float64Array =>
    counts.slice(frame.startHour - startHour, frame.startHour - startHour + frame.hours)
  const analysis = new Analysis(frame, frame.hours)
  const severities = SEVERITIES.map((severity) => {
    const own = templates
      .filter((each) => each.severity === severity)
      .map((each) => cut(each.counts))
    return Float64Array.from({ length: frame.hours }, (_, hour) =>
      own.reduce((sum, counts) => sum + (counts[hour] ?? 0), 0),
    )
  })
  analysis.addSource({ source: 'web', severities })
  for (const [i, { severity, counts }] of templates.entries())
    analysis.addTemplate({ ...template(`${i}`, cut(counts)), severity })
  const found = analysis.group()
  t.ok(found.length > 0)
  t.same(
    found.filter(({ startedAtMs }) => startedAtMs >= (startHour + shifted) * HOUR_MS),
    [],
  )
})

test('the sums over several sources are series too', async (t) => {
  const one = new Analysis(FRAME, hours)
  one.addSource({ source: 'db', severities: [NONE, wavering(4, () => 500), NONE, NONE, NONE] })
  one.addTotals()
  t.same(one.group(), [])
  const both = new Analysis(FRAME, hours)
  for (const [i, source] of ['db', 'web'].entries()) {
    const counts = wavering(i + 1, (hour) => (hour >= hours - 5 ? 0 : 500))
    both.addSource({ source, severities: [NONE, counts, NONE, NONE, NONE] })
  }
  both.addTotals()
  const overAll = both.group().filter(({ source }) => source === '')
  t.match(overAll, [
    { scope: 'all', kind: 'silence' },
    { scope: 'severity', kind: 'silence' },
  ])
})

test('the same data give the same snapshot', async (t) => {
  t.same(example(), example())
})

test('a snapshot of nothing is empty', async (t) => {
  const analysis = new Analysis(FRAME, hours)
  t.match(analysis.snapshot({ ...FACTS, anomalies: [], correlations: [] }), {
    series: 0,
    anomalies: [],
    templates: [],
    events: { hours: [], coverage: null },
    asOfMs: (FRAME.startHour + hours) * HOUR_MS,
  })
})

test('intervals of the forecast hold as often as they say', async (t) => {
  const MONDAY = 4 * 24
  let [inside, all] = [0, 0]
  for (const { counts } of generate({ seed: 3, series: 35, weeks: 7, quietWeeks: 8 })) {
    for (const whole of [40 * 24 + 7, 44 * 24 + 13]) {
      const known = { counts: counts.slice(0, whole), startHour: MONDAY }
      for (const [i, { low, high }] of forecastNext(known, whole).hours.entries()) {
        const count = counts[whole + i] ?? 0
        all++
        if (count >= low && count <= high) inside++
      }
    }
  }
  t.equal(all, 35 * 2 * 24)
  t.ok(inside / all > 0.86 && inside / all < 0.97, `${inside / all}`)
})

test('templates of a source that go the same way at the same time are one anomaly group', async (t) => {
  const analysis = new Analysis(FRAME, hours)
  const stops = (seed: number, at: number, mean: number): Float64Array =>
    wavering(seed, (hour) => (hour >= at ? 0 : mean))
  // So many other messages that neither the source nor its severity has an anomaly.
  const noise = wavering(9, () => 20_000)
  const source = { source: 'web', severities: [NONE, noise, NONE, NONE, NONE] }
  analysis.addSource(source)
  analysis.addTemplate(template('00000000000000aa', stops(1, hours - 20, 40)))
  analysis.addTemplate(template('00000000000000bb', stops(2, hours - 20, 200)))
  analysis.addTemplate(template('00000000000000cc', stops(3, hours - 19, 90)))
  const soars = wavering(4, (hour) => (hour >= hours - 5 ? 900 : 20))
  analysis.addTemplate(template('00000000000000dd', soars))
  analysis.addTemplate({
    ...template('00000000000000ee', stops(5, hours - 20, 60)),
    source: 'db',
  })
  const found = analysis.group().filter(({ scope }) => scope === 'template')
  const byId = new Map(found.map((each) => [each.templateId?.slice(-2), each]))
  const silences = ['aa', 'bb', 'cc'].flatMap((id) => byId.get(id) ?? [])
  t.equal(silences.length, 3)
  const [leader, ...others] = silences.filter(({ partOf }) => partOf === null)
  t.same(others, [], 'one of the three leads them')
  t.equal(leader?.score, Math.max(...silences.map(({ score }) => score)), 'the gravest')
  t.ok(silences.every(({ id, partOf }) => id === leader?.id || partOf === leader?.id))
  t.equal(byId.get('dd')?.partOf, null, 'what goes the other way is not')
  t.equal(byId.get('ee')?.partOf, null, 'nor what another source does')
})

test('the group of an anomaly is the one that was known at its end, whoever asks', async (t) => {
  const [source] = simulate({ seed: 3, sources: 1, weeks: 9, quietWeeks: 5 })
  const templates = source?.templates ?? []
  const length = templates[0]?.counts.length ?? 0
  const start = 4 * 24 + 168 * 2500
  const at = (end: number): readonly InsightAnomaly[] => {
    const frame = frameEndingAt(start + end)
    const cut = (counts: Float64Array): Float64Array =>
      Float64Array.from({ length: frame.hours }, (_, i) => counts[frame.startHour - start + i] ?? 0)
    const analysis = new Analysis(frame, frame.hours)
    const severities = SEVERITIES.map((severity) => {
      const own = templates.filter((each) => each.severity === severity)
      return cut(
        Float64Array.from({ length }, (_, i) =>
          own.reduce((sum, { counts }) => sum + (counts[i] ?? 0), 0),
        ),
      )
    })
    analysis.addSource({ source: 'web', severities })
    for (const [i, { severity, counts }] of templates.entries())
      analysis.addTemplate({ ...template(`${i}`, cut(counts)), severity })
    return analysis.group()
  }
  let [compared, parts] = [0, 0]
  for (let end = 6 * 168; end <= length; end += 31)
    for (const one of at(end)) {
      const then = at(one.endedAtMs / HOUR_MS - start).find(({ id }) => id === one.id)
      t.same({ ...then, state: 'over' }, { ...one, state: 'over' }, `${one.id} as of ${end}`)
      compared++
      if (one.partOf !== null) parts++
    }
  t.ok(compared > 30 && parts > 10, `${compared} ${parts}`)
})
