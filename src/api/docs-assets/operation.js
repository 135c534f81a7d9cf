import { execute } from './call.js'
import { element, prose } from './dom.js'
import { collectFields } from './fields.js'
import { describeSchema } from './schema.js'

/**
 * One operation: what it takes, what it answers, and a form that calls it.
 *
 * @param context `{ document, token() }`
 */
export function renderOperation(operation, context) {
  const { method, path, spec } = operation
  const summary = element(
    'summary',
    {},
    element(`span.method.${method}`, {}, method.toUpperCase()),
    element('code.path', {}, path),
    element('span.about', {}, spec.summary ?? ''),
    spec['x-role'] ? element('span.role', {}, spec['x-role']) : null,
  )
  const body = element('div.body')
  const details = element('details.operation', { id: anchor(operation) }, summary, body)
  // Each form is made when it is opened, because rendering hundreds at once is slow.
  details.addEventListener('toggle', () => {
    if (details.open && body.childElementCount === 0) body.append(...renderBody(operation, context))
  })
  return details
}

export const anchor = ({ method, path, spec }) => spec.operationId ?? `${method}-${path}`

function renderBody(operation, context) {
  const { spec, method, path } = operation
  const result = element('div.result')
  const fields = collectFields(spec, context.document)
  const button = element('button', {}, 'Execute')
  const form = element('form', {}, ...fields.map(({ row }) => row), button)
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    void execute({ method, path, fields, button, result, token: context.token() })
  })
  const parts = [...prose(spec.description)]
  if (spec['x-no-try']) return [...parts, renderReplies(spec, context.document)]
  return [...parts, form, result, renderReplies(spec, context.document)]
}

function renderReplies({ responses = {} }, document) {
  const rows = Object.entries(responses).map(([status, { description, content = {} }]) => {
    const [type, media] = Object.entries(content)[0] ?? []
    const schema = Number(status) < 400 && media ? describeSchema(media.schema, document) : null
    return element(
      'details.reply',
      {},
      element('summary', {}, element('b', {}, status), ' ', ...prose(description)[0]?.childNodes ?? []),
      schema === null ? null : element('pre', {}, `${type}\n${schema}`),
    )
  })
  return element('div.replies', {}, element('h4', {}, 'Replies'), ...rows)
}
