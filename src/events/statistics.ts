import type { Store } from '../clickhouse/client.js'
import type { TemplateDirectory } from '../templates/directory.js'
import type { TemplateRegistry } from '../templates/registry.js'
import { createAnalytics } from './analytics.js'
import { createCalendar } from './calendar.js'
import type { Events } from './events.js'
import { createSeries } from './series.js'
import { createSourceStats } from './source-stats.js'
import { createTemplateSamples } from './template-samples.js'
import { createTemplateStats } from './template-stats.js'

interface Counted {
  readonly store: Store
  readonly events: Events
  readonly templates: TemplateRegistry
  readonly directory: TemplateDirectory
}

export type Statistics = ReturnType<typeof createStatistics>

/** What the rollups tell: counts by time, of sources and of templates. */
export function createStatistics({ store, events, templates, directory }: Counted) {
  const sourceStats = createSourceStats(store)
  return {
    series: createSeries(store),
    calendar: createCalendar(store),
    sourceStats,
    analytics: createAnalytics({ store, sourceStats }),
    templateStats: createTemplateStats(store, directory),
    ...createTemplateSamples(templates, events),
  }
}
