import type { Instance } from '../coordination/instance.js'
import { HOUR_MS, MINUTE_MS } from '../model/time.js'
import type { TemplateRow } from '../wal/record.js'
import type { Template, TemplateRegistry } from './registry.js'
import type { CorrectedPriorities } from './directory.js'
import { TemplateShares } from './shares.js'
import { adoptStoredTemplates } from './sharing.js'
import type { TemplateStore } from './store.js'
import { VALUE } from './template-text.js'

/*
 * Frees templates in two ways:
 *
 * 1. A deletion of sources forgets theirs (`ingest/deletions.ts`).
 * 2. A source that has nearly its share (shares.ts) forgets templates that occurred only once, at
 * least an hour ago. Corrected templates stay. ClickHouse knows whether a template occurred again
 * on any instance.
 *
 * Forgotten templates are deleted from the table and marked in the registry. Other instances read
 * that and mark them too (sharing.ts). An instance that gets a message of such a template stores it
 * again, and it stays. When there are enough forgotten templates, the pipeline renumbers the
 * others, which frees the memory.
 */

interface UpkeepDeps extends Pick<Instance, 'log' | 'metrics' | 'replica'> {
  readonly templateStore: TemplateStore
  readonly templates: TemplateRegistry
  readonly sources: {
    /** The ingest key that registered a source; '' for none. */
    ownerOf(source: string): string
  }
  readonly priorities: { readonly overrides: CorrectedPriorities }
  readonly pipeline: {
    adopt(rows: readonly TemplateRow[]): Promise<void>
    /** Resolves when all occurrences so far are in ClickHouse. */
    settle(): Promise<void>
    /** Drops the forgotten templates and renumbers the others. */
    renumberTemplates(): Promise<void>
  }
}

export type TemplateUpkeep = ReturnType<typeof createTemplateUpkeep>

const TICK_MS = 5_000
const RARE_EVERY_MS = 10 * MINUTE_MS
/** The least number of forgotten templates that is worth a pause of the pipeline. */
const MIN_FORGOTTEN = 100

export function createTemplateUpkeep(deps: UpkeepDeps) {
  const { templateStore: store, templates, priorities, pipeline, log } = deps
  deps.replica.onCatchUp(() =>
    adoptStoredTemplates(store, templates, (rows) => pipeline.adopt(rows)),
  )

  const dropForgotten = async (): Promise<void> => {
    const { forgotten } = templates
    if (forgotten < MIN_FORGOTTEN) return
    const startedMs = performance.now()
    await pipeline.renumberTemplates()
    deps.metrics.templatesForgotten(forgotten)
    const tookMs = Math.round(performance.now() - startedMs)
    log.info({ forgotten, left: templates.size, tookMs }, 'templates were forgotten')
  }

  /** Forgets templates of crowded sources that were born before `bornBeforeMs` and occurred only once. */
  const forgetRare = async (bornBeforeMs: number): Promise<void> => {
    const crowded = crowdedSources(deps)
    if (crowded.size === 0) return
    await pipeline.settle()
    const seen = await store.seen([...crowded])
    const families = familiesOf(templates, crowded)
    const rare = [...families].flatMap(([root, family]) => {
      const isOld = family.every(({ born }) => born < bornBeforeMs * 1000)
      const times = family.reduce((sum, { id }) => sum + (seen.get(id) ?? 0), 0)
      return isOld && times <= 1 && priorities.overrides.of(root) === null ? family : []
    })
    if (rare.length < MIN_FORGOTTEN) return
    // The rows are deleted first. A message that arrives meanwhile finds its template marked, or stores it again later.
    await store.forget(rare)
    const ids = new Set(rare.map(({ id }) => id))
    templates.forget(({ id }) => ids.has(id))
  }

  let running: Promise<void> | null = null
  let rareAtMs = Number.NEGATIVE_INFINITY
  const tick = async (): Promise<void> => {
    await dropForgotten()
    if (performance.now() - rareAtMs < RARE_EVERY_MS) return
    rareAtMs = performance.now()
    await forgetRare(Date.now() - HOUR_MS)
    await dropForgotten()
  }
  const timer = setInterval(() => {
    running ??= tick()
      .catch((error: unknown) => log.warn({ err: error }, 'templates could not be forgotten'))
      .finally(() => (running = null))
  }, TICK_MS).unref()

  return {
    forgetRare,
    dropForgotten,
    close: async (): Promise<void> => {
      clearInterval(timer)
      await running
    },
  }
}

function crowdedSources({ templates, sources }: UpkeepDeps): ReadonlySet<string> {
  const shares = new TemplateShares()
  for (const template of templates.numbered()) {
    if (template.text === VALUE || templates.isForgotten(template)) continue
    shares.setOwner(template.source, sources.ownerOf(template.source))
    shares.add(template.source)
  }
  return new Set(shares.crowded())
}

/** The templates of some sources with those merged into them, by the id of the target. */
function familiesOf(
  templates: TemplateRegistry,
  sources: ReadonlySet<string>,
): ReadonlyMap<string, readonly Template[]> {
  const families = new Map<string, Template[]>()
  for (const template of templates.numbered()) {
    if (!sources.has(template.source) || templates.isForgotten(template)) continue
    const root = templates.byId(template.id) ?? template
    if (root.text === VALUE) continue
    const family = families.get(root.id)
    if (family === undefined) families.set(root.id, [template])
    else family.push(template)
  }
  return families
}
