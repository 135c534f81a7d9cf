import type { TemplateRow } from '../wal/record.js'
import type { Template, TemplateRegistry } from './registry.js'
import type { TemplateStore } from './store.js'

/*
 * Several instances find templates independently and store them in one table. An id is a hash of
 * the source and of the text at birth, so the same first message gives the same id everywhere. Each
 * instance reads the templates of the others and passes them to its miner; the resulting changes
 * are stored in turn, until all agree (`TemplateMiner`). When one instance forgets a template
 * (upkeep.ts), the others do too, unless they get a message of it: then it is stored and adopted
 * again.
 */

/**
 * Passes all known templates to the miner and registers the numbers that it assigns.
 *
 * @param restore resolves to the number of each template
 */
export async function numberTemplates(
  templates: TemplateRegistry,
  restore: (known: readonly TemplateRow[]) => Promise<Int32Array>,
): Promise<void> {
  const known = templates.all()
  const nos = await restore(known)
  templates.learn(known.map((template, i) => ({ ...template, no: nos[i] ?? 0 })))
}

/** Passes templates that other instances have stored since the last call to the miner. */
export const adoptStoredTemplates = (
  store: Pick<TemplateStore, 'changed'>,
  templates: TemplateRegistry,
  adopt: (rows: readonly TemplateRow[]) => Promise<void>,
): Promise<void> =>
  store.changed(async ({ templates: stored, forgotten }) => {
    const ids = new Set(forgotten)
    if (ids.size > 0) templates.forget(({ id }) => ids.has(id))
    templates.remember(stored.map(({ id }) => id))
    const unknown = stored.filter((row) => !isSame(templates.find(row.id), row))
    if (unknown.length > 0) await adopt(unknown)
  })

const isSame = (known: Template | undefined, { text, redirectId, born }: TemplateRow): boolean =>
  known?.text === text && known.redirectId === redirectId && known.born === born
