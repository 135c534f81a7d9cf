import { element, inline } from './dom.js'
import { choicesOf, resolve, sampleOf } from './schema.js'

/** The inputs of an operation, each with the row that shows it. */
export function collectFields(spec, document) {
  const fields = (spec.parameters ?? []).map((parameter) => toField(parameter, document))
  const content = spec.requestBody?.content ?? {}
  const form = content['multipart/form-data']
  if (form) return [...fields, ...formFields(resolve(form.schema, document), document)]
  const [type, media] = Object.entries(content)[0] ?? []
  if (!media) return fields
  const sample = media.example ?? sampleOf(media.schema, document)
  const text = typeof sample === 'string' ? sample : JSON.stringify(sample, null, 2)
  const input = element('textarea', { value: text, rows: Math.min(20, text.split('\n').length + 1) })
  const need = spec.requestBody.required ? 'required' : 'optional'
  return [...fields, { place: 'body', type, input, row: row(`body: ${type}`, input, need) }]
}

function formFields(schema, document) {
  return Object.entries(schema.properties ?? {}).map(([name, property]) => {
    const required = (schema.required ?? []).includes(name)
    const isFile = property.contentMediaType !== undefined
    const resolved = resolve(property, document)
    const input = isFile ? element('input', { type: 'file' }) : inputFor(resolved, document)
    return { place: 'form', name, input, row: row(name, input, note(resolved, required)) }
  })
}

function toField({ name, in: place, required, description, schema }, document) {
  const resolved = resolve(schema, document)
  const input = inputFor(resolved, document)
  const text = note({ description, ...resolved }, required)
  return { place, name, isList: resolved.type === 'array', input, row: row(name, input, text) }
}

function row(label, input, text) {
  return element(
    'label.row',
    {},
    element('span.name', {}, label),
    input,
    element('small', {}, ...inline(text)),
  )
}

function note(schema, required) {
  const bounds = [
    required ? 'required' : null,
    schema.type,
    schema.format,
    schema.minimum === undefined ? null : `from ${schema.minimum}`,
    schema.maximum === undefined ? null : `to ${schema.maximum}`,
    schema.maxLength === undefined ? null : `at most ${schema.maxLength} characters`,
    schema.default === undefined ? null : `default ${schema.default}`,
    schema.type === 'array' ? 'separate with commas' : null,
    schema.description,
  ]
  return bounds.filter(Boolean).join(', ')
}

function inputFor(schema, document) {
  const choices = schema.type === 'boolean' ? [true, false] : choicesOf(schema, document)
  if (schema.type === 'array' || choices === null) {
    const list = schema.type === 'array' ? choicesOf(resolve(schema.items, document), document) : null
    return element('input', { placeholder: (list ?? []).join(',') || String(schema.default ?? '') })
  }
  const options = ['', ...choices].map((value) =>
    element('option', { value: String(value) }, String(value)),
  )
  return element('select', {}, ...options)
}
