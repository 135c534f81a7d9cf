/** @returns the values of a closed set, null for any other schema */
export function choicesOf(schema, document) {
  if (Array.isArray(schema?.enum)) return schema.enum
  const parts = (schema?.anyOf ?? []).map((part) => resolve(part, document))
  const isClosed = parts.length > 0 && parts.every((part) => 'const' in part)
  return isClosed ? parts.map((part) => part.const) : null
}

/** @returns the schema a reference stands for, or the schema itself */
export function resolve(schema, document) {
  const name = /^#\/components\/schemas\/(\w+)$/.exec(schema?.$ref ?? '')?.[1]
  return name === undefined ? (schema ?? {}) : (document.components?.schemas?.[name] ?? {})
}

/** An example of a schema, to be edited. */
export function sampleOf(raw, document, depth = 0) {
  const schema = resolve(raw, document)
  const given = schema.examples?.[0] ?? schema.default ?? schema.const ?? schema.enum?.[0]
  if (given !== undefined) return given
  const first = schema.anyOf?.[0]
  if (first !== undefined) return sampleOf(first, document, depth)
  const make = depth > MAX_DEPTH ? undefined : SAMPLES[schema.type]
  return make === undefined ? '' : make(schema, document, depth + 1)
}

/** Schemas may nest without end. */
const MAX_DEPTH = 4

const SAMPLES = {
  integer: ({ minimum = 0 }) => minimum,
  number: () => 0,
  boolean: () => false,
  null: () => null,
  array: ({ items }, document, depth) => [sampleOf(items, document, depth)],
  object: ({ properties = {} }, document, depth) =>
    Object.fromEntries(
      Object.entries(properties).map(([name, one]) => [name, sampleOf(one, document, depth)]),
    ),
}

/** The shape of a value in a few lines: `name?: type  description`. */
export function describeSchema(raw, document, indent = '') {
  const schema = resolve(raw, document)
  const choices = choicesOf(schema, document)
  if (choices !== null) return choices.map((choice) => JSON.stringify(choice)).join(' | ')
  if (schema.anyOf) {
    return schema.anyOf.map((part) => describeSchema(part, document, indent)).join(' | ')
  }
  if (indent.length > MAX_DEPTH * 3) return schema.type ?? 'any'
  if (schema.type === 'array') return `array of ${describeSchema(schema.items || schema.prefixItems?.[0], document, indent)}`
  if (schema.type !== 'object' || !schema.properties) return schema.type ?? 'any'
  return describeObject(schema, document, indent)
}

function describeObject({ properties, required = [] }, document, indent) {
  const lines = Object.entries(properties).map(([name, property]) => {
    const optional = required.includes(name) ? '' : '?'
    const { description } = resolve(property, document)
    const type = describeSchema(property, document, `${indent}  `)
    return `${indent}  ${name}${optional}: ${type}${description ? `  — ${description}` : ''}`
  })
  return `{\n${lines.join('\n')}\n${indent}}`
}
