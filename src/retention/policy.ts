import { createHash } from 'node:crypto'

import type { Config } from '../config.js'
import { SEVERITIES, type Severity } from '../model/event.js'
import type { Applications } from '../records/applications.js'
import type { Sources } from '../records/sources.js'

/*
 * The retention of an event in days after its arrival. It is that of its source, else that of the
 * source's application, else the setting for its severity, else RETENTION_DAYS. Nothing is kept
 * longer than RETENTION_DAYS, because the rollups and the dictionary of templates must outlive the
 * events.
 */

interface PolicyDeps {
  readonly config: Pick<Config, 'retentionDays' | 'retentionBySeverity'>
  readonly sources: Pick<Sources, 'get' | 'list'>
  readonly applications: Pick<Applications, 'get'>
}

export type RetentionPolicy = ReturnType<typeof createRetentionPolicy>

export function createRetentionPolicy(deps: PolicyDeps) {
  const { retentionDays, retentionBySeverity: bySeverity } = deps.config
  const ownDays = createOwnDays(deps)
  const defaults =
    bySeverity.size === 0
      ? null
      : Uint16Array.from(SEVERITIES, (severity) => bySeverity.get(severity) ?? 0)

  /** Days of retention of a class; 0 stands for RETENTION_DAYS. */
  const limited = (days: number): number =>
    days === 0 ? retentionDays : Math.min(days, retentionDays)
  const ofSeverity = (severity: Severity): number => limited(bySeverity.get(severity) ?? 0)
  const ofSeverities = (among: readonly Severity[] | null): readonly number[] =>
    (among ?? SEVERITIES).map(ofSeverity)

  /** The retention of the source or its application, else that of the severities. */
  const orOwn = (source: string, bySeverities: () => number): number => {
    const own = ownDays.of(source)
    return own === null ? bySeverities() : limited(own)
  }

  return {
    limited,
    daysOf: (source: string, severity: Severity): number =>
      orOwn(source, () => ofSeverity(severity)),
    /** The longest retention of the events of a source. */
    daysOfSource: (source: string): number => orOwn(source, () => Math.max(...ofSeverities(null))),
    /** Days of retention of dead letters, which have no severity. */
    daysOfDeadLetters: (source: string): number => orOwn(source, () => retentionDays),

    /** The class of new events of a source, by the number of their severity; null when all are in class 0. */
    classesOf: (source: string): Uint16Array | null => {
      const own = ownDays.of(source)
      return own === null ? defaults : new Uint16Array(SEVERITIES.length).fill(own)
    },

    /** The shortest retention of events of these sources and severities; null stands for all. */
    shortestDays: (
      sources: readonly string[] | null,
      severities: readonly Severity[] | null,
    ): number => {
      const shortest = Math.min(retentionDays, ...ofSeverities(severities))
      const days =
        sources === null
          ? ownDays.list().map(([, own]) => limited(own))
          : sources.map((source) => orOwn(source, () => shortest))
      // Sources without a retention of their own are included for null.
      return days.reduce((a, b) => Math.min(a, b), sources === null ? shortest : retentionDays)
    },

    /** A text that is equal for equal policies; null when RETENTION_DAYS applies to everything. */
    fingerprint: (): string | null => {
      const own = ownDays.list()
      if (own.length === 0 && bySeverity.size === 0) return null
      const text = JSON.stringify([own, [...bySeverity]])
      return createHash('sha256').update(text).digest('hex')
    },
  }
}

/** The retention of sources and their applications. */
function createOwnDays({ sources, applications }: PolicyDeps) {
  /** Null when neither the source nor its application has a retention. */
  const of = (name: string): number | null => {
    const { retentionDays = null, applicationId = null } = sources.get(name) ?? {}
    if (retentionDays !== null || applicationId === null) return retentionDays
    return applications.get(applicationId)?.retentionDays ?? null
  }
  return {
    of,
    /** The name and days of each source that has a retention of its own or of its application. */
    list: (): readonly (readonly [string, number])[] =>
      sources.list().flatMap(({ name }) => {
        const own = of(name)
        return own === null ? [] : [[name, own] as const]
      }),
  }
}
