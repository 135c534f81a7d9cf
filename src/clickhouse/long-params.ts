type Params = Readonly<Record<string, unknown>>

/** The longest parameter that ClickHouse accepts: `http_max_field_value_size`, which only a user's profile can change. */
const MAX_BYTES = 131_072

interface Bound {
  readonly query: string
  readonly query_params: Params
}

/** Binds a long list of texts in pieces: `{names:Array(String)}` becomes `{names:…}`, `{names_1:…}` and so on, joined. */
export function inShortParams(query: string, params: Params): Bound {
  const long = Object.entries(params).filter(isLong)
  if (long.length === 0) return { query, query_params: params }
  const pieces = new Map(long.map(([name, texts]) => [name, toPieces(name, texts)]))
  const joined = query.replaceAll(/\{(\w+):Array\(String\)\}/g, (placeholder, name: string) => {
    const names = pieces.get(name)?.map(([piece]) => `{${piece}:Array(String)}`)
    return names === undefined ? placeholder : `arrayConcat(${names.join(', ')})`
  })
  return {
    query: joined,
    query_params: { ...params, ...Object.fromEntries([...pieces.values()].flat()) },
  }
}

/** Counts the quotes, a comma, and at most a backslash before each byte. */
const bytesOf = (text: string): number => Buffer.byteLength(text) * 2 + 3

const isLong = (entry: [string, unknown]): entry is [string, readonly string[]] => {
  const [, value] = entry
  if (!Array.isArray(value) || typeof value[0] !== 'string') return false
  return value.reduce((sum: number, text: string) => sum + bytesOf(text), 2) > MAX_BYTES
}

function toPieces(name: string, texts: readonly string[]): [string, readonly string[]][] {
  const pieces: string[][] = [[]]
  let bytes = 2
  for (const text of texts) {
    bytes += bytesOf(text)
    if (bytes > MAX_BYTES) {
      pieces.push([])
      bytes = 2 + bytesOf(text)
    }
    pieces.at(-1)?.push(text)
  }
  return pieces.map((piece, i) => [i === 0 ? name : `${name}_${i}`, piece])
}
