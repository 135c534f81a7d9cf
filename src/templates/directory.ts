import type { Priority } from '../model/event.js'
import type { TemplateRegistry } from './registry.js'

/** The priorities that people gave to templates. */
export interface CorrectedPriorities {
  /** @returns null for none */
  of(templateId: string): Priority | null
}

/** Looks templates up for readers of rollups. Ids are 16 lower-case hex digits. */
export interface TemplateDirectory {
  /** @returns the target into which `id` was merged, or the template itself; null when it is not known */
  describe(id: string): DescribedTemplate | null
  /** The ids of all merged templates with the ids of their targets. */
  redirects(): readonly { readonly from: string; readonly into: string }[]
}

export interface DescribedTemplate {
  readonly id: string
  readonly text: string
  /** The corrected priority of the template. */
  readonly override: Priority | null
}

export const createTemplateDirectory = (
  templates: TemplateRegistry,
  overrides: CorrectedPriorities,
): TemplateDirectory => ({
  describe(id) {
    const template = templates.byId(id)
    if (template === undefined) return null
    return { id: template.id, text: template.text, override: overrides.of(template.id) }
  },
  redirects: () => templates.redirects(),
})
