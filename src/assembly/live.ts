import type { Alerts } from '../records/alerts.js'
import type { Applications } from '../records/applications.js'
import type { Limiter } from '../api/auth/limits.js'
import { createOriginCheck } from '../api/auth/origin.js'
import type { Sessions } from '../api/auth/sessions.js'
import { createKpiSockets } from '../api/routes/kpis.js'
import type { Config } from '../config.js'
import { createKpiCache, type KpiCache } from '../events/kpi-cache.js'
import { createKpiPush, type KpiPush } from '../events/kpi-push.js'
import { toKpiSnapshot } from '../events/kpi-snapshot.js'
import type { KpiSnapshot } from '../model/kpi.js'
import { readKpiCounts } from '../events/kpi-counts.js'
import { createTemplateStats } from '../events/template-stats.js'
import type { Sources } from '../records/sources.js'
import type { Log } from '../telemetry/log.js'
import type { Ingestion } from './ingestion.js'
import type { Storage } from './storage.js'

export interface Live {
  readonly kpis: KpiCache
  readonly sockets: ReturnType<typeof createKpiSockets>
  readonly push: KpiPush
}

export interface LiveParts {
  readonly config: Config
  readonly storage: Storage
  readonly ingestion: Ingestion
  readonly sessions: Sessions
  readonly limiter: Limiter
  readonly applications: Applications
  readonly alerts: Alerts
  /** 0..1, null while the insight engine has nothing to say */
  readonly mlHealth: () => number | null
  readonly log: Log
  readonly maxWebSockets: number
}

/** The KPI snapshot, its cache, and the sockets it is pushed to. */
export async function openLive(parts: LiveParts): Promise<Live> {
  const { config, storage, sessions, limiter, log } = parts
  const kpis = createKpiCache({ state: storage.state, compute: () => compute(parts) })
  let push: KpiPush | null = null
  const sockets = createKpiSockets({
    authenticate: (token) => sessions.authenticate(token),
    consume: (address) => limiter.consume('ws_limiter', { address }),
    mayUseCookies: createOriginCheck(config.corsOrigins),
    greet: async (client) => {
      await push?.greet(client)
    },
    maxOpen: parts.maxWebSockets,
    maxOpenPerAddress: config.wsMaxOpen,
  })
  push = await createKpiPush({
    cache: kpis,
    sockets,
    signals: storage.state,
    onError: (error) => log.warn({ err: error }, 'no KPI snapshot could be pushed'),
  })
  return { kpis, sockets, push }
}

async function compute({
  storage,
  ingestion,
  applications,
  alerts,
  mlHealth,
}: LiveParts): Promise<KpiSnapshot> {
  // the snapshot is for the clients of all instances
  await storage.following.current()
  const { directory } = ingestion
  const groups = groupSources(applications, ingestion.sources)
  const sources = groups.flatMap((group) => group.sources)
  const [counts, templatesKnown] = await Promise.all([
    readKpiCounts(storage.store, directory, { nowMs: Date.now(), sources }),
    createTemplateStats(storage.store, directory).known(),
  ])
  return toKpiSnapshot(counts, {
    applications: groups,
    alerts: {
      open: alerts.openCount(),
      recent: alerts.recent(5).map(({ id, title, severity, createdAtMs }) => ({
        id,
        title,
        severity,
        created_at: new Date(createdAtMs).toISOString(),
      })),
    },
    templatesKnown,
    textOfTemplate: (id) => directory.describe(id)?.text ?? null,
    mlHealth: mlHealth(),
  })
}

function groupSources(applications: Applications, sources: Sources) {
  const byApplication = new Map<string, string[]>()
  for (const { name, applicationId } of sources.list()) {
    if (applicationId === null) continue
    const linked = byApplication.get(applicationId)
    if (linked === undefined) byApplication.set(applicationId, [name])
    else linked.push(name)
  }
  return applications.list().map(({ id, name }) => ({ name, sources: byApplication.get(id) ?? [] }))
}
