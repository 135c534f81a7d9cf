import type { FieldCandidates } from './field-candidates.js'

/**
 * Composes the message of a record without one from its other fields: `GetObject s3.amazonaws.com:
 * AccessDenied` (audit logs of clouds), `"GET /cart" 502` (requests).
 *
 * @returns '' for other records
 */
export function composeMessage(candidates: FieldCandidates): string {
  const operation = textOf(candidates, 'operation')
  if (operation !== '') return operationLine(operation, candidates)
  const [method, url] = [textOf(candidates, 'httpMethod'), textOf(candidates, 'url')]
  if (method === '' || url === '') return ''
  const status = textOf(candidates, 'httpStatus')
  return `"${method} ${url}"${status === '' ? '' : ` ${status}`}`
}

function operationLine(operation: string, candidates: FieldCandidates): string {
  const target = textOf(candidates, 'target')
  const failure = candidates
    .of('failure')
    .map(({ value }) => toText(value))
    .filter((text) => text !== '')
  const done = target === '' ? operation : `${operation} ${target}`
  return failure.length === 0 ? done : `${done}: ${failure.join(' ')}`
}

/** Whether a record is that of an HTTP request, as access logs in JSON are. */
export const isRequest = (candidates: FieldCandidates): boolean =>
  /^[A-Za-z]{3,16}$/.test(textOf(candidates, 'httpMethod')) && textOf(candidates, 'url') !== ''

type Part = 'operation' | 'target' | 'failure' | 'httpMethod' | 'url' | 'httpStatus'

const textOf = (candidates: FieldCandidates, field: Part): string =>
  candidates
    .of(field)
    .map(({ value }) => toText(value))
    .find((text) => text !== '') ?? ''

const toText = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' ? String(value).slice(0, 8192) : ''
