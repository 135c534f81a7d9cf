import type { OwnStatement } from '../writer/writer.js'
import type { BatchStore } from '../writer/batches.js'
import type { Events } from '../events/events.js'
import type { Sources } from '../records/sources.js'
import type { PriorityStore } from '../priority/store.js'

/** What happens outside the pipeline when a statement takes effect. */
export interface StatementHooks {
  removeAlerts(sources: readonly string[]): Promise<number>
  clearEntities(): Promise<Readonly<Record<string, number>>>
}

/** What statements act on. */
export interface Run {
  readonly batches: BatchStore
  readonly events: Events
  readonly sources: Sources
  readonly priorities: PriorityStore
  /** templates with occurrences */
  readonly templatesKnown: () => Promise<number>
  readonly hooks: StatementHooks
}

/**
 * Carries out a statement of the WAL; repeating it is harmless.
 *
 * @returns what the one who asked is told
 */
export async function executeStatement(statement: OwnStatement, run: Run): Promise<unknown> {
  switch (statement.kind) {
    case 'delete-sources': {
      const events = await run.batches.deleteSources(statement.sources)
      const alerts = await run.hooks.removeAlerts(statement.sources)
      await run.priorities.remove((source) => statement.sources.includes(source))
      await run.sources.remove(statement.sources)
      return { events, alerts }
    }
    case 'clear-all': {
      const templates = await run.templatesKnown()
      const cleared = await run.batches.clear()
      const entities = await run.hooks.clearEntities()
      await run.priorities.remove(() => true)
      const sources = await run.sources.removeAll()
      const { events, deadLetters } = cleared
      return { events, templates, dead_letters: deadLetters, sources, ...entities }
    }
    case 'correct-event':
      await run.events.correct(statement.correction)
      return null
    case 'delete-dead-letters':
      await run.batches.deleteDeadLetters(statement.ids)
      return null
  }
}
