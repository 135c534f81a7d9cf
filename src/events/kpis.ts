import type { Instance } from '../coordination/instance.js'
import type { ComputedKpis } from '../model/kpi.js'
import type { Applications } from '../records/applications.js'
import type { WorkRecords } from '../records/records.js'
import type { Sources } from '../records/sources.js'
import type { TemplateDirectory } from '../templates/directory.js'
import { createKpiCache, type KpiCache } from './kpi-cache.js'
import { readKpiCounts } from './kpi-counts.js'
import { toKpiSnapshot } from './kpi-snapshot.js'
import type { TemplateStats } from './template-stats.js'

interface KpiDeps extends Pick<Instance, 'store' | 'state' | 'replica'> {
  readonly directory: TemplateDirectory
  readonly sources: Sources
  readonly applications: Applications
  readonly records: WorkRecords
  readonly templateStats: TemplateStats
  readonly insights: {
    /** 0..1; null while there is no recent snapshot. */
    mlHealth(): number | null
  }
}

/** The KPIs, computed from the rollups and the records. */
export const createKpis = (deps: KpiDeps): KpiCache =>
  createKpiCache(deps.state, () => computeKpis(deps))

async function computeKpis(deps: KpiDeps): Promise<ComputedKpis> {
  const { store, directory, applications, sources } = deps
  const { alerts } = deps.records
  // The snapshot serves the clients of all instances.
  await deps.replica.refresh()
  const nowMs = Date.now()
  const groups = groupSources(applications, sources)
  const [counts, templatesKnown] = await Promise.all([
    readKpiCounts(store, directory, {
      nowMs,
      sources: groups.flatMap((group) => group.sources),
    }),
    deps.templateStats.known(),
  ])
  const snapshot = toKpiSnapshot(counts, {
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
    mlHealth: deps.insights.mlHealth(),
  })
  // The last field, because kpi-push.ts compares snapshots without it.
  return { ...snapshot, computed_at: new Date(nowMs).toISOString() }
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
