import { Type, type Static } from '@sinclair/typebox'

import type { PriorityModel } from './model.js'
import { NOTHING_LEARNED, PriorityStateDoc, withCorrection, type PriorityState } from './state.js'
import { PRIORITIES, type Priority, type Severity } from '../model/event.js'
import { PrioritySchema } from '../model/schemas.js'
import type { Sequencer } from '../ingest/sequencer.js'
import type { TemplateTable } from '../ingest/template-table.js'
import type { Collection } from '../coordination/collection.js'
import type { Entities } from '../coordination/entities.js'

/** A person's priority for a template. */
const TemplatePriorityDoc = Type.Object({
  templateId: Type.String({ pattern: '^[0-9a-f]{16}$' }),
  source: Type.String(),
  priority: PrioritySchema,
  /** when it was said, ms since 1970 */
  atMs: Type.Optional(Type.Number()),
})
export type TemplatePriority = Readonly<Static<typeof TemplatePriorityDoc>>

export interface TemplateCorrection {
  readonly templateId: string
  readonly source: string
  readonly severity: Severity
  readonly priority: Priority
}

/** What people said of priorities, and what was learned from it; the same on every instance. */
export interface Priorities {
  readonly overrides: Collection<TemplatePriority>
  /** Makes a person's priority for a template durable and known to the sequencer; the model learns from it. */
  set(correction: TemplateCorrection): Promise<void>
  /** Nothing was said of the templates of these sources. */
  forget(isGone: (source: string) => boolean): void
  /** What was said of them since they were forgotten holds. */
  recall(isMeant: (source: string) => boolean): void
}

/** there is one model */
const MODEL_ID = 'current'

export interface PriorityParts {
  readonly entities: Entities
  readonly sequencer: Sequencer
  readonly model: PriorityModel
  readonly templates: TemplateTable
}

export function createPriorities({
  entities,
  sequencer,
  model,
  templates,
}: PriorityParts): Priorities {
  const overrides = entities.collection<TemplatePriority>('template_priority', TemplatePriorityDoc)
  const learned = entities.collection<PriorityState>('priority_model', PriorityStateDoc)
  const tell = inOneGo((changes: readonly Change[]) => sequencer.override(changes))
  sequencer.override(overrides.list().map((each) => [each.templateId, toCorrected(each)]))
  model.restore(learned.get(MODEL_ID) ?? NOTHING_LEARNED)
  overrides.onChange(({ id, value }) => tell([id, value === null ? null : toCorrected(value)]))
  learned.onChange(({ value }) => model.restore(value ?? NOTHING_LEARNED))
  return {
    overrides,
    set: async ({ templateId, source, severity, priority }) => {
      await overrides.put(templateId, { templateId, source, priority, atMs: Date.now() })
      const text = templates.byId(templateId)?.text
      if (text === undefined) return
      await learned.update(MODEL_ID, (state) =>
        withCorrection(state ?? NOTHING_LEARNED, { severity, priority, text }),
      )
    },
    forget: (isGone) => {
      const gone = overrides.list().filter(({ source }) => isGone(source))
      sequencer.override(gone.map(({ templateId }) => [templateId, null]))
    },
    recall: (isMeant) => {
      const said = overrides.list().filter(({ source }) => isMeant(source))
      sequencer.override(said.map((each) => [each.templateId, toCorrected(each)]))
    },
  }
}

type Change = readonly [templateId: string, ReturnType<typeof toCorrected> | null]

const toCorrected = ({ priority, atMs = 0 }: TemplatePriority) => ({
  priority: PRIORITIES.indexOf(priority),
  atMs,
})

/** Passes on together what comes in one turn: each time all templates are looked at. */
function inOneGo<T>(pass: (items: readonly T[]) => void): (item: T) => void {
  let waiting: T[] = []
  const flush = (): void => {
    const items = waiting
    waiting = []
    pass(items)
  }
  return (item) => {
    waiting.push(item)
    if (waiting.length === 1) queueMicrotask(flush)
  }
}
