import type { TemplateRegistry } from '../templates/registry.js'
import type { Applications } from '../records/applications.js'
import type { Sources } from '../records/sources.js'

interface Known {
  readonly templates: TemplateRegistry
  readonly sources: Sources
  readonly applications: Applications
}

/** Finds the templates and applications that events refer to. */
export type EventContext = ReturnType<typeof createEventContext>

export const createEventContext = ({ templates, sources, applications }: Known) => ({
  /** @returns the template that `id` was merged into, or `id` itself */
  canonicalTemplate: (id: string): string => templates.byId(id)?.id ?? id,
  /** @returns `id` and every id that was merged into it */
  templateAliases: (id: string): readonly string[] => templates.aliasesOf(id),
  applicationOf: (source: string): string | null => {
    const id = sources.get(source)?.applicationId ?? null
    return applications.list().find((application) => application.id === id)?.name ?? null
  },
  /** Every application with the names of its sources. */
  applications: () => {
    const names = new Map<string | null, string[]>()
    for (const { applicationId, name } of sources.list()) {
      const known = names.get(applicationId)
      if (known === undefined) names.set(applicationId, [name])
      else known.push(name)
    }
    return applications.list().map(({ id, name }) => ({ name, sources: names.get(id) ?? [] }))
  },
  /** Every template that was merged into another one. */
  redirects: () => templates.redirects(),
})
