import { Type, type Static } from '@sinclair/typebox'

import type { Instance } from '../coordination/instance.js'
import { PRIORITIES, type EventRecord, type Priority, type Severity } from '../model/event.js'
import { PrioritySchema } from '../model/schemas.js'
import type { TemplateRegistry } from '../templates/registry.js'
import { PriorityModel } from './model.js'
import { PriorityOverrides, type Override } from './overrides.js'
import { NOTHING_LEARNED, PriorityStateDoc, withCorrection, type PriorityState } from './state.js'

/** The priority that a person gave a template, as it is stored. */
const TemplatePriorityDoc = Type.Object({
  templateId: Type.String({ pattern: '^[0-9a-f]{16}$' }),
  source: Type.String(),
  priority: PrioritySchema,
  atMs: Type.Optional(Type.Number()),
})
type TemplatePriority = Readonly<Static<typeof TemplatePriorityDoc>>

export type Priorities = ReturnType<typeof openPriorities>

const MODEL_ID = 'current'

/**
 * Opens the model and the corrected priorities. These, and what the model has learned from them, are durable and the same
 * on every instance: a change that is stored here or by another instance reaches `overrides` and `model`.
 *
 * @param templates has all stored templates
 */
export function openPriorities(
  { entities }: Pick<Instance, 'entities'>,
  templates: TemplateRegistry,
) {
  const model = new PriorityModel()
  model.watch(templates)
  const overrides = new PriorityOverrides(templates)
  const stored = entities.collection<TemplatePriority>('template_priority', TemplatePriorityDoc)
  const learned = entities.collection<PriorityState>('priority_model', PriorityStateDoc)
  const ofSources = (isMeant: (source: string) => boolean) =>
    stored.list().filter(({ source }) => isMeant(source))
  const change = batched((changes: readonly Change[]) => overrides.set(changes))
  overrides.set(stored.list().map((each) => [each.templateId, toOverride(each)]))
  model.restore(learned.get(MODEL_ID) ?? NOTHING_LEARNED)
  stored.onChange(({ id, value }) => change([id, value === null ? null : toOverride(value)]))
  learned.onChange(({ value }) => model.restore(value ?? NOTHING_LEARNED))
  return {
    model,
    overrides,
    /** Explains the automatic priority that the model gives the event now; `override` is the corrected one of its template. */
    explain: ({ templateId, severity, message }: EventRecord) => {
      const template = templates.byId(templateId)
      return {
        ...model.explain(template?.no ?? 0, severity, template?.text ?? message),
        override: overrides.of(template?.id ?? templateId),
      }
    },
    /** Stores the corrected priority of a template and teaches it to the model. */
    async correct(correction: {
      readonly templateId: string
      readonly source: string
      readonly severity: Severity
      readonly priority: Priority
    }): Promise<void> {
      const { templateId, source, severity, priority } = correction
      await stored.put(templateId, { templateId, source, priority, atMs: Date.now() })
      const text = templates.byId(templateId)?.text
      if (text === undefined) return
      await learned.update(MODEL_ID, (state) =>
        withCorrection(state ?? NOTHING_LEARNED, { severity, priority, text }),
      )
    },
    /** Suspends the overrides of sources that are being deleted. */
    forget(isDeleted: (source: string) => boolean): void {
      overrides.set(ofSources(isDeleted).map(({ templateId }) => [templateId, null]))
    },
    /** Reloads the overrides that were stored for these sources since `forget`. */
    recall(isMeant: (source: string) => boolean): void {
      overrides.set(ofSources(isMeant).map((each) => [each.templateId, toOverride(each)]))
    },
    /** Deletes the stored overrides of sources. */
    async remove(isDeleted: (source: string) => boolean): Promise<void> {
      for (const { templateId } of ofSources(isDeleted)) await stored.remove(templateId)
    },
  }
}

type Change = readonly [templateId: string, override: Override | null]

const toOverride = ({ priority, atMs = 0 }: TemplatePriority): Override => ({
  priority: PRIORITIES.indexOf(priority),
  atMs,
})

/** Collects the changes up to the next microtask, because each change of the overrides visits all templates. */
function batched<T>(pass: (items: readonly T[]) => void): (item: T) => void {
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
