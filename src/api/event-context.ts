import type { EventRecord } from '../model/event.js'
import type { PriorityOverrides } from '../priority/overrides.js'
import type { TemplateRegistry } from '../templates/registry.js'
import type { PriorityModel } from '../priority/model.js'
import type { Applications } from '../records/applications.js'
import type { Sources } from '../records/sources.js'

interface Known {
  readonly templates: TemplateRegistry
  readonly sources: Sources
  readonly applications: Applications
}

/** What an event is shown with: its template as it is today, and the application of its source. */
export const createEventContext = ({ templates, sources, applications }: Known) => ({
  canonicalTemplate: (id: string): string => templates.byId(id)?.id ?? id,
  templateAliases: (id: string): readonly string[] => templates.aliasesOf(id),
  applicationOf: (source: string): string | null => {
    const id = sources.get(source)?.applicationId ?? null
    return applications.list().find((application) => application.id === id)?.name ?? null
  },
  sourcesOfApplication: (name: string): readonly string[] => {
    const id = applications.byName(name)?.id
    if (id === undefined) return []
    return sources
      .list()
      .filter((source) => source.applicationId === id)
      .map((source) => source.name)
  },
})

interface Scoring {
  readonly templates: TemplateRegistry
  readonly model: PriorityModel
  readonly overrides: PriorityOverrides
}

/** How the automatic priority of such an event comes about, and a person's priority for its template. */
export function explainPriority(event: EventRecord, { templates, model, overrides }: Scoring) {
  const template = templates.byId(event.templateId)
  return {
    ...model.explain(template?.no ?? 0, event.severity, template?.text ?? event.message),
    override: overrides.of(template?.id ?? event.templateId),
  }
}
