/** What a run says that it can't find yet, it finds from the hour on that it names, and not an hour before. */
import { test } from 'tap'
import { Analysis, type AnalysedTemplate } from '../../../src/insights/analysis.js'
import { frameEndingAt, isWeekend } from '../../../src/insights/frame.js'
import { LEARNED, type InsightSnapshot, type Learning } from '../../../src/model/insights.js'
import { HOUR_MS } from '../../../src/model/time.js'

/** Hours since 1970: a midnight, and the hours after it at which the only source begins. */
const MIDNIGHT = 20_000 * 24
const BEGINS = [0, 1, 23].map((hour) => MIDNIGHT + hour)
const STEADY = 100

/** A run at an hour over a source that began earlier, whose last hour is a burst of one template. */
function runAt(endHour: number, begins: number, firstSeenHour: number): InsightSnapshot {
  const frame = frameEndingAt(endHour)
  const counts = Float64Array.from({ length: frame.hours }, (_, i) => {
    const hour = frame.startHour + i
    if (hour < begins) return 0
    return hour === endHour - 1 ? 40 * STEADY : STEADY
  })
  const none = new Float64Array(frame.hours)
  const analysis = new Analysis(frame, frame.hours)
  analysis.addSource({ source: 'web', severities: [none, counts, none, none, none] })
  const template: AnalysedTemplate = {
    templateId: '00000000000000aa',
    source: 'web',
    severity: 'INFO',
    counts,
    firstSeenMs: firstSeenHour * HOUR_MS,
    lastSeenMs: endHour * HOUR_MS,
    routine: 0,
    routineEvents: 0,
    unsureEvents: 0,
  }
  analysis.addTemplate(template)
  const facts = { dataAgeHours: 0, corrections: 0, agreeing: 0, correlations: [] }
  return analysis.snapshot({ ...facts, anomalies: analysis.group() })
}

const FOUND: Record<Learning['finds'], (endHour: number, begins: number) => boolean> = {
  anomalies: (end, begins) =>
    runAt(end, begins, begins).anomalies.some(({ scope }) => scope === 'source'),
  anomalies_of_weekends: (end, begins) =>
    isWeekend(end - 1) &&
    runAt(end, begins, begins).anomalies.some(({ scope }) => scope === 'source'),
  new_templates: (end, begins) =>
    runAt(end, begins, end - 1).templates.some(({ change }) => change === 'new'),
  grown_templates: (end, begins) =>
    runAt(end, begins, begins).templates.some(({ change }) => change === 'grown'),
  forecast: (end, begins) => runAt(end, begins, begins).events.hours.length > 0,
}

test('learning names the hour from which on something is found', async (t) => {
  for (const begins of BEGINS) {
    const { learning } = runAt(begins + 2, begins, begins)
    t.same(
      learning.map(({ finds }) => finds),
      LEARNED,
      'two hours after the first event nothing is known',
    )
    for (const { finds, fromMs } of learning) {
      const fromHour = (fromMs ?? Number.NaN) / HOUR_MS
      const waits = (hour: number): boolean =>
        runAt(hour, begins, begins).learning.some((one) => one.finds === finds)
      t.ok(FOUND[finds](fromHour, begins), `${finds} of ${begins} at its hour`)
      t.notOk(FOUND[finds](fromHour - 1, begins), `${finds} of ${begins}, an hour before`)
      t.same([waits(fromHour - 1), waits(fromHour)], [true, false])
    }
  }
})

test('before the first event everything waits for it', async (t) => {
  const frame = frameEndingAt(MIDNIGHT)
  const facts = { anomalies: [], correlations: [], dataAgeHours: 0, corrections: 0, agreeing: 0 }
  const { learning } = new Analysis(frame, frame.hours).snapshot(facts)
  t.same(
    learning,
    LEARNED.map((finds) => ({ finds, fromMs: null })),
  )
})
