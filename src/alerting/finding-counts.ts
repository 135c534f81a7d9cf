/*
 * Anomalies as counts of alert rules: what is counted in a slot is the gravity of an anomaly that went on then. A group is a
 * series of the insights in one direction.
 */

import type { Finding } from '../insights/findings.js'
import { isRise } from '../model/insights.js'
import { DAY_MS, HOUR_MS } from '../model/time.js'
import { NO_ATTRIBUTES } from './attributes.js'
import type { Count, CountDeps } from './count.js'
import type { Counter } from './counter.js'
import { matcherOf, type Row } from './matcher.js'

/** What an anomaly is grouped by. */
export const FINDING_GROUP = ['source', 'severity', 'template', 'direction'] as const
/** An anomaly that had ended when it was found counts for this long after its end. */
export const NEWS_MS = DAY_MS
/** Anomalies that go on began later than this. */
const LONGEST_MS = 12 * DAY_MS

interface Asked {
  readonly fromMs: number
  readonly toMs: number
  readonly isPast: boolean
  readonly everyMs: number
}

/** Counts the anomalies of a rule. */
export async function countFindings(
  { findings, resolve }: Pick<CountDeps, 'findings' | 'resolve'>,
  { query, leastGravity, kinds }: Extract<Counter, { kind: 'findings' }>,
  asked: Asked,
  signal?: AbortSignal,
): Promise<readonly Count[]> {
  const matcher = matcherOf(resolve(query))
  const all = await findings(Math.max(0, asked.fromMs - LONGEST_MS), signal)
  return all
    .filter(
      (one) =>
        one.gravity >= leastGravity &&
        (kinds.length === 0 || kinds.includes(one.kind)) &&
        matcher?.matches(toRow(one)) === true,
    )
    .flatMap((finding) => {
      const count = { group: groupOf(finding), count: finding.gravity, finding }
      return slotsOf(finding, asked).map((slot) => ({ ...count, slot }))
    })
}

const toRow = ({ source, severity, templateId: template }: Finding): Row => ({
  source,
  severity,
  template,
  host: '',
  environment: '',
  priority: '',
  type: '',
  texts: new Set(),
  attributes: NO_ATTRIBUTES,
})

/** The severity of a source or template is that of most occurrences, which may change meanwhile. */
const groupOf = ({ source, scope, severity, templateId, kind }: Finding): readonly string[] => [
  source,
  scope === 'severity' ? severity : '',
  templateId,
  isRise(kind) ? 'rise' : 'fall',
]

/** An anomaly goes on until an hour has passed without it. */
function slotsOf(
  { detectedAtMs, endedAtMs, isOver }: Finding,
  { fromMs, toMs, isPast, everyMs }: Asked,
): readonly number[] {
  const slotAt = (ms: number): number => Math.floor(ms / everyMs)
  const until = slotAt(isOver ? Math.min(toMs, endedAtMs + HOUR_MS) : toMs)
  const detected = slotAt(detectedAtMs)
  // It is detected at the end of an hour that may not be over yet.
  const since = isPast ? detected : Math.min(detected, slotAt(toMs) - 1)
  const from = Math.max(slotAt(fromMs), since)
  if (until > from) return Array.from({ length: until - from }, (_, i) => from + i)
  return isPast || endedAtMs <= toMs - NEWS_MS ? [] : [slotAt(endedAtMs) - 1]
}
