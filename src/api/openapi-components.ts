type Json = Readonly<Record<string, unknown>>

interface Collected {
  readonly schemas: Json
  /** The tree with references in place of the moved schemas. */
  readonly value: unknown
}

/**
 * Moves every schema whose `title` is a name to the components. Schemas that differ under one title stay
 * where they are.
 */
export function collectComponents(tree: unknown): Collected {
  const plain: unknown = toOpenApi(JSON.parse(JSON.stringify(tree)))
  const byTitle = new Map<string, Set<string>>()
  walk(plain, (node) => {
    const title = titleOf(node)
    if (title === null) return
    const forms = byTitle.get(title) ?? new Set()
    byTitle.set(title, forms.add(JSON.stringify(node)))
  })
  const shared = new Set([...byTitle].filter(([, forms]) => forms.size === 1).map(([name]) => name))
  const schemas: Record<string, unknown> = {}
  const value = replace(plain, shared, schemas)
  return { schemas, value }
}

/**
 * Writes tuples in the form of JSON Schema 2020-12, which OpenAPI 3.1 uses (TypeBox and Ajv use an older draft), and a choice
 * of texts as `enum`, which generators of clients and the reference read as one.
 */
function toOpenApi(value: unknown): unknown {
  if (!isObject(value)) return value
  if (Array.isArray(value)) return value.map(toOpenApi)
  const copy = Object.fromEntries(
    Object.entries(value).map(([key, child]) => [key, toOpenApi(child)]),
  )
  const { anyOf, ...choice } = copy
  const texts = Array.isArray(anyOf) ? anyOf.map(textOf) : []
  if (texts.length > 0 && texts.every((text) => text !== null))
    return { type: 'string', enum: texts, ...choice }
  if (copy['type'] !== 'array' || !Array.isArray(copy['items'])) return copy
  const { items, additionalItems: _, ...rest } = copy
  return { ...rest, prefixItems: items, items: false }
}

/** The only text that a schema allows. */
const textOf = (schema: unknown): string | null => {
  const text: unknown = isObject(schema) ? schema['const'] : null
  return typeof text === 'string' ? text : null
}

const NAME = /^[A-Z][A-Za-z0-9]*$/

function titleOf(node: Json): string | null {
  const { title } = node
  const isSchema = 'type' in node || 'anyOf' in node || 'allOf' in node
  return isSchema && typeof title === 'string' && NAME.test(title) ? title : null
}

const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null

function walk(value: unknown, visit: (node: Json) => void): void {
  if (!isObject(value)) return
  if (!Array.isArray(value)) visit(value)
  for (const child of Object.values(value)) walk(child, visit)
}

function replace(
  value: unknown,
  shared: ReadonlySet<string>,
  schemas: Record<string, unknown>,
): unknown {
  if (!isObject(value)) return value
  if (Array.isArray(value)) return value.map((child) => replace(child, shared, schemas))
  const entries = Object.entries(value)
  const copy = Object.fromEntries(
    entries.map(([key, child]) => [key, replace(child, shared, schemas)]),
  )
  const title = titleOf(value)
  if (title === null || !shared.has(title)) return copy
  schemas[title] = copy
  return { $ref: `#/components/schemas/${title}` }
}
