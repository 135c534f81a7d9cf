import { OptionalKind, type TSchema } from '@sinclair/typebox'

type Node = Readonly<Record<string, unknown>>

/** Candidates for schemas with a pattern or format; the first that matches is the example. */
const TEXTS = [
  'checkout',
  '826b4ca860b38a20',
  'ik_examp',
  '2026-11-21',
  `sha256:${'0f'.repeat(32)}`,
] as const
const BY_FORMAT: Readonly<Record<string, string>> = {
  uuid: '3f1c9a52-7f0e-4a51-9a7e-2f6f0b8f4c11',
  'date-time': '2026-11-21T09:28:19.000Z',
  date: '2026-11-21',
  email: 'ada@example.com',
}
const MAX_DEPTH = 6

/** Builds an example of a schema from its own examples and defaults where it has some. */
export function exampleOf(schema: TSchema, depth = 0): unknown {
  const node: Node = schema
  const given =
    firstOf(node['examples']) ?? node['default'] ?? node['const'] ?? firstOf(node['enum'])
  if (given !== undefined) return given
  const choice = firstOf(node['anyOf']) ?? firstOf(node['allOf'])
  if (isSchema(choice)) return exampleOf(choice, depth)
  return EXAMPLES[String(node['type'])]?.(node, depth + 1) ?? null
}

const isSchema = (value: unknown): value is TSchema => typeof value === 'object' && value !== null

const firstOf = (list: unknown): unknown => (Array.isArray(list) ? (list[0] as unknown) : undefined)

const EXAMPLES: Readonly<Record<string, (node: Node, depth: number) => unknown>> = {
  object: (node, depth) => (depth > MAX_DEPTH ? {} : objectExample(node, depth)),
  array: arrayExample,
  integer: numberExample,
  number: numberExample,
  boolean: () => true,
  string: textExample,
}

function numberExample({ minimum }: Node): number {
  return typeof minimum === 'number' ? minimum : 1
}

function objectExample(node: Node, depth: number): Node {
  const properties = isSchema(node['properties']) ? Object.entries<unknown>(node['properties']) : []
  return Object.fromEntries(
    properties.flatMap(([name, property]) =>
      isSchema(property) && !isReference(property) ? [[name, exampleOf(property, depth)]] : [],
    ),
  )
}

/** Whether it may be absent and names something by its id, which an example can't know. */
const isReference = (property: TSchema): boolean =>
  OptionalKind in property && JSON.stringify(property).includes('"format":"uuid"')

function arrayExample(node: Node, depth: number): readonly unknown[] {
  const { items, minItems } = node
  const length = typeof minItems === 'number' && minItems > 1 ? minItems : 1
  if (Array.isArray(items)) return items.filter(isSchema).map((item) => exampleOf(item, depth))
  return isSchema(items) && depth <= MAX_DEPTH
    ? Array.from({ length }, () => exampleOf(items, depth))
    : []
}

function textExample({ format, pattern, minLength }: Node): string {
  const byFormat = BY_FORMAT[String(format)]
  if (byFormat !== undefined) return byFormat
  const fits = (text: string): boolean =>
    (typeof pattern !== 'string' || new RegExp(pattern, 'u').test(text)) &&
    (typeof minLength !== 'number' || text.length >= minLength)
  return TEXTS.find(fits) ?? 'x'.repeat(typeof minLength === 'number' ? minLength : 1)
}
