import { toSkeleton } from '../model/stored-message.js'
import type { PriorityModel } from '../priority/model.js'
import { VALUE } from '../templates/template-text.js'
import type { StoredTemplate as MinedTemplate } from './miner-thread.js'
import type { Pipeline } from './pipeline.js'
import type { Pool } from './pool.js'
import type { Sequencer } from './sequencer.js'
import type { SkeletonTable } from './skeleton-table.js'
import type { Template, TemplateTable } from './template-table.js'
import type { StoredTemplate, TemplateStore } from '../templates/store.js'

/** Who must know of every template. */
export interface TemplateReaders {
  readonly templates: TemplateTable
  readonly model: PriorityModel
  readonly sequencer: Sequencer
  readonly skeletons: SkeletonTable
}

/** Makes templates that are new, or read differently from before, known to everyone in the process. */
export function learnTemplates(
  { templates, model, sequencer, skeletons }: TemplateReaders,
  changes: readonly Template[],
): void {
  for (const change of changes) {
    const { no, text } = change
    templates.apply(change)
    if (no === 0) continue
    model.register(no, text)
    skeletons.put(no, toSkeleton(text.split(VALUE)))
  }
  sequencer.noteTemplates(changes)
}

/** What is stored, known before the first message. */
export async function readTemplates(
  store: Pick<TemplateStore, 'all'>,
  readers: TemplateReaders,
): Promise<void> {
  const stored = await store.all()
  learnTemplates(
    readers,
    stored.map((template) => ({ ...toMined(template), no: 0 })),
  )
}

/** Gives the template owner what is known, and everyone the numbers it gave. */
export async function numberTemplates(pool: Pool, readers: TemplateReaders): Promise<void> {
  const known = readers.templates.all()
  const nos = await pool.restore(known)
  learnTemplates(
    readers,
    known.map((template, i) => ({ ...template, no: nos[i] ?? 0 })),
  )
}

/** Takes over what other instances have found since the last time. */
export const followTemplates = (
  store: Pick<TemplateStore, 'changed'>,
  { templates, pipeline }: { readonly templates: TemplateTable; readonly pipeline: Pipeline },
): Promise<void> =>
  store.changed(async (stored) => {
    const news = stored.map(toMined).filter((each) => !isSame(templates.find(each.id), each))
    if (news.length > 0) await pipeline.adopt(news)
  })

const toMined = ({ redirectTo, ...template }: StoredTemplate): MinedTemplate => ({
  ...template,
  redirectId: redirectTo,
})

const isSame = (known: Template | undefined, { text, redirectId, born }: MinedTemplate): boolean =>
  known?.text === text && known.redirectId === redirectId && known.born === born
