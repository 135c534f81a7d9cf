import { AppError } from '../model/errors.js'

/** Whether what a record points to exists. */
export interface ReferenceParts {
  readonly hasUser: (id: string) => boolean
  readonly hasApplication: (id: string) => boolean
  readonly hasIncident: (id: string) => boolean
}

/** Ids a record may point to; null and absent point to nothing. */
interface References {
  readonly assigneeId?: string | null
  readonly applicationId?: string | null
  readonly incidentId?: string | null
}

/** Checks the ids of a body; those whose function is not given may not occur. */
export function createReferences(parts: Partial<ReferenceParts>) {
  const checks = [
    { field: 'assigneeId', path: 'assignee_id', noun: 'user', exists: parts.hasUser },
    {
      field: 'applicationId',
      path: 'application_id',
      noun: 'application',
      exists: parts.hasApplication,
    },
    { field: 'incidentId', path: 'incident_id', noun: 'incident', exists: parts.hasIncident },
  ] as const
  return {
    /** @throws AppError validation_error naming every field that points to nothing */
    check(references: References): void {
      const errors = checks.flatMap(({ field, path, noun, exists }) => {
        const id = references[field] ?? null
        if (id === null || exists?.(id) === true) return []
        return [{ in: 'body', path, message: `is not the id of an existing ${noun}` }]
      })
      if (errors.length === 0) return
      const names = errors.map(({ path }) => path).join(', ')
      throw new AppError('validation_error', `invalid: ${names}`, { details: { errors } })
    },
  }
}
