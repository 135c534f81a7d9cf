import { isIP } from 'node:net'

/** Stops the start. The message names the setting, what is wrong with the value, and a valid one. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

interface RateLimit {
  readonly count: number
  readonly seconds: number
}

export interface Setting<T> {
  readonly env: string
  /** The default as a user would write it; '' means unset. */
  readonly fallback: string
  readonly doc: string
  /** Error messages do not repeat the value of a secret. */
  readonly secret: boolean
  parse(text: string): T
}

export const fail = (setting: string, problem: string): never => {
  throw new ConfigError(`${setting}${problem}`)
}

export const textSetting = (env: string, fallback: string, doc: string): Setting<string> => ({
  env,
  fallback,
  doc,
  secret: false,
  parse: (value) => value,
})

export const integer = (
  env: string,
  fallback: number,
  range: readonly [number, number],
  doc: string,
): Setting<number> => ({
  env,
  fallback: String(fallback),
  doc,
  secret: false,
  parse: (value) => {
    const n = /^-?\d{1,15}$/.test(value) ? Number(value) : Number.NaN
    if (n >= range[0] && n <= range[1]) return n
    return fail(env, `=${value} is not an integer in ${range[0]}..${range[1]}`)
  },
})

export const choice = <const T extends string>(
  env: string,
  fallback: NoInfer<T>,
  values: readonly T[],
  doc: string,
): Setting<T> => ({
  env,
  fallback,
  doc,
  secret: false,
  parse: (value) =>
    values.find((v) => v.toLowerCase() === value.toLowerCase()) ??
    fail(env, `=${value} is not one of ${values.join(', ')}`),
})

export const boolean = (env: string, fallback: boolean, doc: string): Setting<boolean> => ({
  env,
  fallback: String(fallback),
  doc,
  secret: false,
  parse: (value) => {
    if (/^(true|1|yes|on)$/i.test(value)) return true
    if (/^(false|0|no|off)$/i.test(value)) return false
    return fail(env, `=${value} is neither true nor false`)
  },
})

export const list = (env: string, doc: string): Setting<readonly string[]> => ({
  env,
  fallback: '',
  doc,
  secret: false,
  parse: (value) =>
    value
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== ''),
})

const MAX_ATTRIBUTES = 64
const MAX_ATTRIBUTE_CHARACTERS = 128

export const attributes = (env: string, doc: string): Setting<readonly string[]> => ({
  ...list(env, doc),
  parse: (value) => {
    const names = [...new Set(list(env, doc).parse(value))]
    if (names.length > MAX_ATTRIBUTES)
      return fail(env, `names more than ${MAX_ATTRIBUTES} attributes`)
    if (names.some((name) => name.length > MAX_ATTRIBUTE_CHARACTERS))
      return fail(env, `holds a name of more than ${MAX_ATTRIBUTE_CHARACTERS} characters`)
    return names
  },
})

export const origins = (env: string, doc: string): Setting<readonly string[]> => ({
  ...list(env, doc),
  parse: (value) => {
    const items = list(env, doc).parse(value)
    for (const item of items) {
      if (!URL.canParse(item) || new URL(item).origin !== item)
        fail(env, `: ${item} is not an origin such as https://dash.example.com`)
    }
    return items
  },
})

const isRange = (text: string): boolean => {
  const [address = '', prefix, ...rest] = text.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  return (
    prefix === undefined ||
    (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (version === 4 ? 32 : 128))
  )
}

export const ranges = (env: string, doc: string): Setting<readonly string[]> => ({
  ...list(env, doc),
  parse: (value) => {
    const items = list(env, doc).parse(value)
    for (const item of items)
      if (!isRange(item))
        fail(env, `: ${item} is neither an address nor a range such as 10.0.0.0/8`)
    return items
  },
})

export const limit = (env: string, fallback: string, doc: string): Setting<RateLimit> => ({
  env,
  fallback,
  doc,
  secret: false,
  parse: (value) => {
    const match = /^(\d{1,9})\/(\d{1,6})$/.exec(value)
    const [count, seconds] = [Number(match?.[1]), Number(match?.[2])]
    if (count >= 1 && seconds >= 1) return { count, seconds }
    return fail(env, `=${value} is not COUNT/SECONDS, such as ${fallback}`)
  },
})

export const secret = (env: string, minLength: number, doc: string): Setting<string | null> => ({
  env,
  fallback: '',
  doc,
  secret: true,
  parse: (value) => {
    if (value === '') return null
    if (value.length >= minLength) return value
    return fail(env, ` has ${value.length} characters; at least ${minLength} are needed`)
  },
})

export const url = (
  env: string,
  protocols: readonly string[],
  doc: string,
): Setting<string | null> => ({
  env,
  fallback: '',
  doc,
  secret: true,
  parse: (value) => {
    if (value === '') return null
    if (URL.canParse(value) && protocols.includes(new URL(value).protocol)) return value
    return fail(env, ` is not a URL starting with ${protocols.join('// or ')}//`)
  },
})
