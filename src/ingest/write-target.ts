import type { ChangeEffects } from '../coordination/changes.js'
import type { Instance } from '../coordination/instance.js'
import type { Events } from '../events/events.js'
import type { Ledger } from '../events/ledger.js'
import type { Sources } from '../records/sources.js'
import type { TemplateStore } from '../templates/store.js'
import type { BatchStore } from '../writer/batch-store.js'
import type { BatchTarget } from '../writer/writer.js'

interface WriteTargetDeps extends Pick<Instance, 'log' | 'metrics' | 'replica'> {
  readonly batches: BatchStore
  readonly events: Events
  readonly templateStore: TemplateStore
  readonly sources: Sources
  readonly effects: ChangeEffects
  readonly ledger: Ledger
}

/** The target of the writer: stores the rows, templates and sources of WAL records, and executes their commands. */
export function createWriteTarget(deps: WriteTargetDeps): BatchTarget {
  const { batches, events, templateStore, sources, effects, ledger, replica, metrics, log } = deps
  return {
    newToken: batches.newToken,
    taken: batches.taken,
    storedAmong: batches.storedAmong,
    insert: async (table, parts, token) => {
      const startedMs = performance.now()
      let ok = false
      try {
        await batches.insert(table, parts, token)
        ok = true
      } finally {
        metrics.insertEnded(table, (performance.now() - startedMs) / 1000, ok)
      }
    },
    templates: async (rows) => {
      const leftOut = await templateStore.save(rows)
      if (leftOut > 0) log.error({ leftOut }, 'ClickHouse refused templates; they are left out')
      // Notified before the batch counts as written, so that a reader of its events knows their templates.
      await replica.notify()
    },
    register: async (registrations) => {
      const refused = await sources.store(registrations)
      if (refused.length > 0)
        log.error({ refused: refused.length }, 'ClickHouse refused sources; they are left out')
    },
    registerAgain: (name) => sources.registerAgain(name),
    execute: async (command) => {
      switch (command.kind) {
        case 'correct-event':
          await events.correct(command.correction)
          return null
        case 'delete-dead-letters':
          await ledger.deleting(() => batches.deleteDeadLetters(command.ids))
          return null
        case 'delete-events':
          await ledger.deleting(() => batches.deleteEvents(command))
          return null
        case 'delete-sources':
        case 'clear-all':
          return await effects.execute(command)
      }
    },
  }
}
