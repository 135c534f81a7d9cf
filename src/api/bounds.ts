import type { TSchema } from '@sinclair/typebox'

/** The most fields of an object; no body has more. */
const MAX_FIELDS = 100
/** The most faults that are reported. */
const MAX_FAULTS = 20
/** The deepest nesting of a body. Recursive readers overflow the stack at some thousands of levels. */
const MAX_DEPTH = 32

interface Fault {
  readonly path: string
  readonly message: string
}

/**
 * Finds the lists, texts and objects of a value that are larger or deeper than its schema allows.
 * Ajv runs only on values without such faults, because its work and its errors grow with what a
 * client sends: a list of 2,500 wrong words has an error for each word and each alternative.
 */
export function sizeFaults(schema: TSchema, value: unknown, path = ''): readonly Fault[] {
  if (isDeeper(value, MAX_DEPTH))
    return [{ path, message: `must NOT be nested deeper than ${MAX_DEPTH} levels` }]
  const faults: Fault[] = []
  collect(schema, value, path, faults)
  return faults
}

const isDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1)))

function collect(schema: TSchema, value: unknown, path: string, faults: Fault[]): void {
  if (faults.length >= MAX_FAULTS) return
  if (typeof value === 'string') {
    const limits = formsOf(schema, 'string').map(({ maxLength = Infinity }) => maxLength)
    const limit = Math.max(...limits)
    // Ajv counts code points, of which a text of this length has at least half as many.
    if (
      limits.length > 0 &&
      (value.length > 2 * limit || (value.length > limit && Array.from(value).length > limit))
    )
      faults.push({ path, message: `must NOT have more than ${limit} characters` })
    return
  }
  if (Array.isArray(value)) collectOfList(schema, value, path, faults)
  else if (typeof value === 'object' && value !== null) collectOfObject(schema, value, path, faults)
}

function collectOfList(
  schema: TSchema,
  value: readonly unknown[],
  path: string,
  faults: Fault[],
): void {
  const [form] = formsOf(schema, 'array')
  const limit: number = form?.['maxItems'] ?? Infinity
  if (value.length > limit) {
    faults.push({ path, message: `must NOT have more than ${limit} items` })
    return
  }
  const items: TSchema = form?.['items'] ?? {}
  value.forEach((item, i) => collect(items, item, join(path, String(i)), faults))
}

function collectOfObject(schema: TSchema, value: object, path: string, faults: Fault[]): void {
  for (const form of formsOf(schema, 'object')) {
    const properties: Readonly<Record<string, TSchema>> | undefined = form['properties']
    if (properties === undefined) continue
    if (Object.keys(value).length > MAX_FIELDS) {
      faults.push({ path, message: `must NOT have more than ${MAX_FIELDS} fields` })
      return
    }
    for (const [name, one] of Object.entries(properties))
      if (Object.hasOwn(value, name))
        collect(one, Reflect.get(value, name), join(path, name), faults)
  }
}

/** The schema, or the members of its unions and intersections, that describe values of a type. */
function formsOf(schema: TSchema, type: string): readonly TSchema[] {
  if (schema['type'] === type) return [schema]
  const members: readonly TSchema[] = schema['anyOf'] ?? schema['oneOf'] ?? schema['allOf'] ?? []
  return members.flatMap((member) => formsOf(member, type))
}

const join = (path: string, step: string): string => (path === '' ? step : `${path}.${step}`)
