import type { Static } from '@sinclair/typebox'

import type { AnomalySchema, ExplanationSchema, SnapshotSchema } from '../../api/schemas/insight.js'

export type Anomaly = Static<typeof AnomalySchema>
export type Snapshot = Static<typeof SnapshotSchema>
export type Explanation = Static<typeof ExplanationSchema>
export type Contribution = Explanation['templates'][number]
export type TemplateChange = Snapshot['emerging_templates'][number]

/** Whether the history is too short to find these. */
export const isLearning = ({ learning }: Snapshot, what: string): boolean =>
  learning.some(({ finds }) => finds === what)

export const NOT_ANALYSED = 'Not analysed yet: the history is too short.'

/** Describes in words what an anomaly is about. */
export function subjectOf({ scope, source, severity, template_text: text }: Anomaly): string {
  switch (scope) {
    case 'all':
      return 'all events'
    case 'source':
      return source ?? ''
    case 'severity':
      return source === null ? `${severity}` : `${severity} of ${source}`
    case 'template':
      return text ?? 'a template'
  }
}

/** The query of an anomaly's events. */
export function lineOf({ scope, source, severity, template_id: template }: Anomaly): string {
  const parts = [
    scope !== 'template' && source !== null ? `source:${JSON.stringify(source)}` : '',
    scope === 'severity' && severity !== null ? `severity:${severity.toLowerCase()}` : '',
    scope === 'template' && template !== null ? `template:${template}` : '',
  ]
  return parts.filter((part) => part !== '').join(' ')
}
