import { ConstantTexts } from './constant-texts.js'
import { TemplateRegistry } from './registry.js'
import type { TemplateStore } from './store.js'
import { SignatureCache } from './signature-cache.js'

/** The number of cached signatures, 16 bytes each. */
const SIGNATURES = 1 << 18

export type TemplateTables = ReturnType<typeof createTemplateTables>

/** Opens the tables with the stored templates. The pool numbers them (`sharing.ts`). */
export async function openTemplates(store: TemplateStore): Promise<TemplateTables> {
  const tables = createTemplateTables()
  const stored = await store.all()
  tables.templates.learn(stored.map((row) => ({ ...row, no: 0 })))
  return tables
}

/**
 * The registry of the templates, and the two tables in shared memory that the workers read: the
 * template of a signature, and the constant text of a template. Both tables are updated with the
 * registry.
 */
export function createTemplateTables() {
  const templates = new TemplateRegistry()
  const signatures = SignatureCache.create(SIGNATURES)
  const constantTexts = ConstantTexts.create()
  templates.onRenumber(() => signatures.clear())
  constantTexts.watch(templates)
  return { templates, signatures, constantTexts }
}
