import { PRIORITIES, SEVERITIES } from '../model/event.js'
import type { InsightAnomaly, InsightSnapshot } from '../model/insights.js'
import type { AnomalyQuery, KeptAnomaly } from './store.js'
import type { PriorityModel } from '../priority/model.js'
import { DAY_MS } from '../model/time.js'

/** how far back known anomalies may go on */
const KNOWN_MS = 12 * DAY_MS
const MAX_KNOWN = 20_000

export const neverAlerted = (anomaly: InsightAnomaly): KeptAnomaly => ({
  ...anomaly,
  alertedAtMs: 0,
})

export const knownAround = (asOfMs: number): AnomalyQuery => ({
  atMs: Number.MAX_SAFE_INTEGER,
  sinceMs: asOfMs - KNOWN_MS,
  after: null,
  states: [],
  scopes: [],
  kinds: [],
  sources: [],
  severities: [],
  templates: [],
  ids: [],
  leastScore: 0,
  wholeOnly: false,
  limit: MAX_KNOWN,
})

/** @param json made of a snapshot, maybe by a program that did not count hosts */
export function parseSnapshot(json: string): InsightSnapshot {
  const snapshot = JSON.parse(json) as InsightSnapshot // nothing else is stored
  return {
    ...snapshot,
    correlations: snapshot.correlations.map((each) => ({ ...each, hosts: each.hosts ?? [] })),
  }
}

/** The snapshot under the ids that the anomalies are kept under. */
export function withKnownIds(
  snapshot: InsightSnapshot,
  anomalies: readonly InsightAnomaly[],
  ids: ReadonlyMap<string, string>,
): InsightSnapshot {
  const idOf = (id: string): string => ids.get(id) ?? id
  return {
    ...snapshot,
    anomalies: anomalies.slice(0, snapshot.anomalies.length),
    correlations: snapshot.correlations.map((each) => ({
      ...each,
      anomalyId: idOf(each.anomalyId),
      alsoAffected: each.alsoAffected.map(({ source, anomalyId }) => ({
        source,
        anomalyId: idOf(anomalyId),
      })),
    })),
  }
}

/**
 * How often the model, asked by severity and words alone, gives the priority a person gave. Its counters of rarity
 * and bursts have no part in it: they grow with P1 too.
 */
export function agreementOf(model: PriorityModel): {
  readonly corrections: number
  readonly agreeing: number
} {
  const { corrections } = model.toJSON()
  const agreeing = corrections.filter(
    ({ words, severity, priority }) =>
      model.explain(0, SEVERITIES[severity] ?? 'INFO', words.join(' ')).priority ===
      PRIORITIES[priority],
  ).length
  return { corrections: corrections.length, agreeing }
}
