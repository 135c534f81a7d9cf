import { AppError } from '../model/errors.js'

/** An id in a body that refers to another record; null and undefined refer to nothing. */
interface Reference {
  readonly path: string
  readonly id: string | null | undefined
  readonly noun: string
  readonly exists: (id: string) => boolean
}

/** @throws AppError validation_error naming every field that refers to no existing record */
export function checkReferences(references: readonly Reference[]): void {
  const errors = references.flatMap(({ path, id, noun, exists }) => {
    if (id === null || id === undefined || exists(id)) return []
    return [{ in: 'body', path, message: `is not the id of an existing ${noun}` }]
  })
  if (errors.length === 0) return
  const names = errors.map(({ path }) => path).join(', ')
  throw new AppError('validation_error', `invalid: ${names}`, { details: { errors } })
}
