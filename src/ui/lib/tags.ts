type Tags = Readonly<Record<string, unknown>>

const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? '')

/** Attributes by their path, as the query language names them: `{"user": {"id": 42}}` is `user.id`. */
export function flatten(
  tags: Tags,
  most = 500,
): readonly (readonly [path: string, text: string])[] {
  const found: (readonly [string, string])[] = []
  const walk = (value: unknown, path: string): void => {
    if (found.length >= most) return
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    if (!isObject || path.split('.').length > 20) {
      found.push([path, textOf(value)])
      return
    }
    for (const [name, inner] of Object.entries(value))
      walk(inner, path === '' ? name : `${path}.${name}`)
  }
  walk(tags, '')
  return found
}

export const tagOf = (tags: Tags, path: string): string =>
  flatten(tags).find(([name]) => name === path)?.[1] ?? ''
