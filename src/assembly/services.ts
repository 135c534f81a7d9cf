import { createApplications, type Applications } from '../api/applications.js'
import { cursorKey } from '../api/cursor.js'
import { createCorrections } from '../api/corrections.js'
import { createDeletions } from '../api/deletions.js'
import { createLimiter, toRateLimits } from '../api/auth/limits.js'
import type { EventRecord } from '../api/event-views.js'
import type { LogServices } from '../api/routes/logs.js'
import { PRIORITIES } from '../model/event.js'
import type { CookieSettings } from '../api/auth/credentials.js'
import type { Config } from '../config.js'
import { encodeCorrection } from '../pipeline/correction-rows.js'
import type { BodyResult } from '../pipeline/block.js'
import type { Submission } from '../pipeline/pipeline.js'
import { createSourceStats } from '../store/source-stats.js'
import type { Sources } from '../store/sources.js'
import type { Accounts } from './accounts.js'
import { ApplicationDoc, parserOf } from './documents.js'
import type { Ingestion } from './ingestion.js'
import type { Storage } from './storage.js'

/** rows of an uploaded file */
const UPLOAD_ROWS = 200_000

export interface ServiceParts {
  readonly config: Config
  readonly storage: Storage
  readonly ingestion: Ingestion
  readonly accounts: Accounts
  readonly jwtSecret: string
  /** counts changed other than by new events */
  readonly onChanged: () => void
}

/** What the routes work with; each router names the part it needs. */
export type Services = ReturnType<typeof createServices>

export function createServices(parts: ServiceParts) {
  const { config, storage, ingestion, accounts } = parts
  const { sources, templates, pipeline, events } = ingestion
  const withLock = <T>(key: string, ttlMs: number, work: () => Promise<T>): Promise<T> =>
    storage.state.withLock(key, ttlMs, () => work())
  const applications = createApplications(
    storage.entities.collection('application', parserOf(ApplicationDoc)),
    withLock,
  )
  const sourceStats = createSourceStats(storage.store)
  const onChanged = (): void => {
    sourceStats.invalidate()
    parts.onChanged()
  }
  return {
    ...accounts,
    limiter: createLimiter(storage.state, toRateLimits(config)),
    cookies: toCookies(config),
    cursorKey: cursorKey(parts.jwtSecret),
    events,
    sources,
    applications,
    sourceStats,
    sourceTotals: (signal?: AbortSignal) => sourceStats.all(signal),
    eventContext: {
      canonicalTemplate: (id: string) => templates.byId(id)?.id ?? id,
      templateAliases: (id: string) => templates.aliasesOf(id),
      ...applicationLinks(sources, applications),
    },
    corrections: createCorrections({
      events,
      withLock,
      canonicalTemplate: (id) => templates.byId(id)?.id ?? id,
      setTemplatePriority: (correction) => ingestion.setTemplatePriority(correction),
      correctRepeats: (id, priority) => ingestion.sequencer.correct(id, priority),
      settle: () => pipeline.settle(),
      encode: encodeCorrection,
      execute: (statement, rows) => pipeline.execute(statement, rows),
      onCorrected: onChanged,
    }),
    deletions: createDeletions({
      withLock,
      forget: ingestion.forget,
      forgetAll: ingestion.forgetAll,
      execute: (statement) => pipeline.execute(statement),
      onDeleted: onChanged,
    }),
    explain: (event: EventRecord) => explain(event, ingestion),
    announce: onChanged,
    upload: (file: Upload): Promise<BodyResult> => pipeline.submit(toSubmission(file)),
  }
}

function explain(
  event: EventRecord,
  { templates, model, sequencer }: Ingestion,
): ReturnType<LogServices['explain']> {
  const template = templates.byId(event.templateId)
  const override = sequencer.overrideOf(template?.id ?? event.templateId)
  return {
    ...model.explain(template?.no ?? 0, event.severity, template?.text ?? event.message),
    override: override === null ? null : (PRIORITIES[override] ?? null),
  }
}

const applicationLinks = (sources: Sources, applications: Applications) => ({
  applicationOf: (source: string): string | null => {
    const id = sources.get(source)?.applicationId ?? null
    return applications.list().find((application) => application.id === id)?.name ?? null
  },
  sourcesOfApplication: (name: string): readonly string[] => {
    const id = applications.byName(name)?.id
    if (id === undefined) return []
    return sources
      .list()
      .filter((source) => source.applicationId === id)
      .map((source) => source.name)
  },
})

interface Upload {
  readonly format: 'csv' | 'json' | 'txt'
  readonly bytes: ArrayBuffer
  readonly source: string
  readonly applicationId: string | null
}

const toSubmission = ({ format, bytes, source, applicationId }: Upload): Submission => ({
  format,
  bytes,
  events: null,
  protocol: 'upload',
  source,
  allowedSources: null,
  keepRaw: false,
  maxRows: UPLOAD_ROWS,
  register: { type: 'file', connector: 'custom', applicationId },
})

const toCookies = (config: Config): CookieSettings => ({
  secure: config.cookieSecure,
  sameSite: config.cookieSamesite,
  accessSeconds: config.accessTokenExpireMinutes * 60,
  refreshSeconds: config.refreshTokenExpireDays * 86_400,
})
