/*
 * Presents anomalies as counts for alert rules. The count of a slot is the gravity of the anomaly
 * that lasted then. A group is a series of the insights together with a direction.
 */

import type { Finding } from '../insights/findings.js'
import { isRise } from '../model/insights.js'
import { DAY_MS, HOUR_MS } from '../model/time.js'
import { NO_ATTRIBUTES } from './attributes.js'
import type { Count, CountDeps } from './count.js'
import type { Counter } from './counter.js'
import { queryMatcherOf, type Row } from './query-matcher.js'

/** The fields that anomalies are grouped by. */
export const FINDING_GROUP = ['source', 'severity', 'template', 'direction'] as const
/** An anomaly that was detected after its end is counted if it ended at most this long before. */
export const NEWS_MS = DAY_MS
/** An anomaly that still lasts began at most this long ago. */
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
  const matcher = queryMatcherOf(resolve(query))
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

/**
 * The severity of a source or template is left out, because it is that of most occurrences and may
 * change while the alert fires.
 */
const groupOf = ({ source, scope, severity, templateId, kind }: Finding): readonly string[] => [
  source,
  scope === 'severity' ? severity : '',
  templateId,
  isRise(kind) ? 'rise' : 'fall',
]

/** An anomaly lasts until an hour has passed without it. */
function slotsOf(
  { detectedAtMs, endedAtMs, isOver }: Finding,
  { fromMs, toMs, isPast, everyMs }: Asked,
): readonly number[] {
  const slotAt = (ms: number): number => Math.floor(ms / everyMs)
  const until = slotAt(isOver ? Math.min(toMs, endedAtMs + HOUR_MS) : toMs)
  const detected = slotAt(detectedAtMs)
  // The detection time is the end of an hour, which may lie in the future.
  const since = isPast ? detected : Math.min(detected, slotAt(toMs) - 1)
  const from = Math.max(slotAt(fromMs), since)
  if (until > from) return Array.from({ length: until - from }, (_, i) => from + i)
  return isPast || endedAtMs <= toMs - NEWS_MS ? [] : [slotAt(endedAtMs) - 1]
}
