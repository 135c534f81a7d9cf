import { PRIORITIES, type Priority } from '../model/event.js'
import type { Template, TemplateRegistry } from '../templates/registry.js'

/** In place of an index of PRIORITIES: the template has no override. */
export const NO_OVERRIDE = 255

/** The priority that a person gave a template. */
export interface Override {
  /** Index of PRIORITIES. */
  readonly priority: number
  readonly atMs: number
}

/**
 * The corrected priorities by template. A correction is stored under the id of the corrected template and applies to
 * every template merged with it; of several corrections of merged templates the latest applies.
 * The sequencer looks one up by template number for every new event.
 */
export class PriorityOverrides {
  readonly #templates: TemplateRegistry
  readonly #byTemplate = new Map<string, Override>()
  /** The overrides by the template into which the corrected ones were merged. */
  #byRoot = new Map<string, Override>()
  #byNo = new Uint8Array(1024).fill(NO_OVERRIDE)

  constructor(templates: TemplateRegistry) {
    this.#templates = templates
    templates.onChange((changes) => this.#refresh(changes))
  }

  /** @returns index of PRIORITIES, or NO_OVERRIDE */
  at(templateNo: number): number {
    return this.#byNo[templateNo] ?? NO_OVERRIDE
  }

  /** The corrected priority of a template, or of those it was merged with. */
  of(templateId: string): Priority | null {
    const root = this.#templates.byId(templateId)?.id ?? templateId
    const override = this.#byRoot.get(root)
    return override === undefined ? null : (PRIORITIES[override.priority] ?? null)
  }

  /** Replaces overrides for events that are sequenced later; null removes one. */
  set(changes: Iterable<readonly [templateId: string, override: Override | null]>): void {
    for (const [templateId, override] of changes) {
      if (override === null) this.#byTemplate.delete(templateId)
      else this.#byTemplate.set(templateId, override)
    }
    this.#rebuild()
  }

  #refresh(changes: readonly Template[]): void {
    if (this.#byTemplate.size === 0) return
    if (changes.some(({ redirectId }) => redirectId !== '')) this.#rebuild()
    else for (const { no, id } of changes) this.#apply(no, id)
  }

  #rebuild(): void {
    this.#byRoot = new Map()
    for (const [templateId, override] of this.#byTemplate) {
      const root = this.#templates.byId(templateId)?.id ?? templateId
      const other = this.#byRoot.get(root)
      if (other === undefined || other.atMs <= override.atMs) this.#byRoot.set(root, override)
    }
    this.#byNo.fill(NO_OVERRIDE)
    if (this.#byRoot.size === 0) return
    for (const { no, id } of this.#templates.numbered())
      this.#apply(no, this.#templates.byId(id)?.id ?? id)
  }

  #apply(no: number, root: string): void {
    if (no >= this.#byNo.length) this.#grow(no)
    this.#byNo[no] = this.#byRoot.get(root)?.priority ?? NO_OVERRIDE
  }

  #grow(no: number): void {
    const grown = new Uint8Array(Math.max(no + 1, this.#byNo.length * 2)).fill(NO_OVERRIDE)
    grown.set(this.#byNo)
    this.#byNo = grown
  }
}
