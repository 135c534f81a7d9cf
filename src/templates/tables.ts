import { ConstantTexts } from './constant-texts.js'
import { TemplateRegistry } from './registry.js'
import { SignatureCache } from './signature-cache.js'

/** The number of cached signatures, 16 bytes each. */
const SIGNATURES = 1 << 18

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
