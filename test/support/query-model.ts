/** What queries mean, by comparing each event in JavaScript: the brute force that answers of ClickHouse are compared with. */
import type { Query, TextTest, ValueTest } from '../../src/query/ast.js'

export interface ModelEvent {
  readonly id: number
  readonly tsMs: number
  readonly source: string
  readonly type: string
  readonly severity: string
  readonly priority: string
  readonly environment: string
  readonly host: string
  readonly message: string
  readonly traceId: string
  readonly spanId: string
  readonly templateId: string
  readonly tags: Readonly<Record<string, unknown>>
  /** The texts of an exception among the tags. */
  readonly exceptions: readonly string[]
  readonly count: number
}

export interface Model {
  readonly applications: Readonly<Record<string, readonly string[]>>
  /** Merged templates by id, with what they were merged into. */
  readonly redirects: Readonly<Record<string, string>>
  /** The first occurrence of each template, merged ones counted for their target. */
  readonly firstSeenMs: ReadonlyMap<string, number>
  readonly endMs: number
}

const LETTER_OR_DIGIT = /[\p{L}\p{N}]/u
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}ー]/u
const isDigit = (char: string | undefined): boolean => char !== undefined && /\p{N}/u.test(char)
const joins = (char: string | undefined): boolean =>
  char !== undefined && LETTER_OR_DIGIT.test(char) && !UNSPACED.test(char)

/** Whether a text has a word, or a word that begins so. */
function hasWord(text: string, wanted: string, isPrefix: boolean): boolean {
  const chars = Array.from(text.toLowerCase())
  const word = Array.from(wanted.toLowerCase())
  while (word.length > 0 && !LETTER_OR_DIGIT.test(word[0] ?? '')) word.shift()
  const isPartOfWord = (char = ''): boolean => isPrefix || /[\p{L}\p{N}\p{M}]/u.test(char)
  while (word.length > 0 && !isPartOfWord(word.at(-1))) word.pop()
  const joined = word.join('')
  const startsAsNumber = /^\p{N}+\./u.test(joined)
  const endsAsNumber = /\.\p{N}+$/u.test(joined)
  for (let at = 0; at + word.length <= chars.length; at += 1) {
    if (word.some((char, i) => chars[at + i] !== char)) continue
    const [before, beforeDot, after, afterDot] = [-1, -2, word.length, word.length + 1].map((i) =>
      at + i < 0 ? undefined : chars[at + i],
    )
    const isStart =
      UNSPACED.test(word[0] ?? '') ||
      (!joins(before) && !(startsAsNumber && before === '.' && isDigit(beforeDot)))
    const isEnd =
      isPrefix ||
      UNSPACED.test(word.at(-1) ?? '') ||
      (!joins(after) && !(endsAsNumber && after === '.' && isDigit(afterDot)))
    if (isStart && isEnd) return true
  }
  return false
}

function toRegex(pattern: string): RegExp {
  const isAnyCase = pattern.startsWith('(?i)')
  return new RegExp(isAnyCase ? pattern.slice(4) : pattern, isAnyCase ? 'isu' : 'su')
}

function has(text: string, test: TextTest): boolean {
  if (text === '') return false
  switch (test.kind) {
    case 'word':
      return hasWord(text, test.text, false)
    case 'prefix':
      return hasWord(text, test.text, true)
    case 'phrase':
      return text.toLowerCase().includes(test.text.toLowerCase())
    case 'regex':
      return toRegex(test.pattern).test(text)
  }
}

const isAnywhere = (event: ModelEvent, test: TextTest): boolean =>
  [event.message, event.host, event.traceId, ...event.exceptions].some((text) => has(text, test))

/** What is at the ends of the paths of tags; null is no value. */
function* ends(
  value: unknown,
  path: string | null,
): Generator<readonly [path: string, value: unknown]> {
  if (Array.isArray(value)) for (const item of value) yield* ends(item, path)
  else if (typeof value === 'object' && value !== null)
    for (const [name, inner] of Object.entries(value))
      yield* ends(inner, path === null ? name : `${path}.${name}`)
  else if (value !== null) yield [path ?? '', value]
}

const isWithinBounds = (path: string, value: unknown): boolean =>
  path !== '' && path.length <= 128 && Buffer.byteLength(JSON.stringify(value)) <= 1024

/** The attributes of an event by their paths; what is beyond the bounds is none. */
export const leavesOf = ({ tags }: ModelEvent): (readonly [path: string, text: string])[] =>
  [...ends(tags, null)]
    .filter(([path, value]) => isWithinBounds(path, value))
    // The reason of a correction is not one of the tags that were sent.
    .filter(([path], i) => i < 256 || path === 'correction_reason')
    .flatMap(([path, value]) => {
      const number = toNumber(String(value))
      const isExact = number !== null && Math.abs(number) < 2 ** 53
      const texts = isExact ? [String(value), String(number)] : [String(value)]
      return texts.map((text) => [path, text] as const)
    })

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/
/** Null for a text that is none, or one that is too large. */
export const toNumber = (text: string): number | null =>
  NUMBER.test(text) && Number.isFinite(Number(text)) ? Number(text) : null

function isValue(text: string, test: ValueTest): boolean {
  const number = toNumber(text)
  switch (test.kind) {
    case 'equal': {
      const wanted = toNumber(test.text)
      return text === test.text || (number !== null && wanted !== null && number === wanted)
    }
    case 'prefix':
      return text.startsWith(test.text)
    case 'regex':
      return toRegex(test.pattern).test(text)
    case 'range':
      return number !== null && number >= Number(test.from) && number <= Number(test.to)
    case 'word':
    case 'phrase':
      throw new Error(`${test.kind} is for texts`)
  }
}

const SEVERITIES = ['debug', 'info', 'warning', 'error', 'critical']
const ENVIRONMENTS: Readonly<Record<string, readonly string[]>> = {
  prod: ['prod', 'production'],
  staging: ['staging', 'stage'],
  dev: ['dev', 'development'],
}
const UNIT_S: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

const rootOf = (model: Model, id: string): string => model.redirects[id] ?? id

/** Whether a built-in field of an event passes one test. */
function fieldPasses(event: ModelEvent, name: string, test: ValueTest, model: Model): boolean {
  const text = 'text' in test ? test.text : ''
  const anyCase = (own: string): boolean =>
    test.kind === 'regex'
      ? toRegex(test.pattern).test(own)
      : isText(own.toLowerCase(), { ...test, text: text.toLowerCase() } as ValueTest)
  switch (name) {
    case 'severity':
      return numberPasses(SEVERITIES.indexOf(event.severity.toLowerCase()), test, (of) =>
        SEVERITIES.indexOf(of.toLowerCase()),
      )
    case 'priority':
      return event.priority === text
    case 'type':
      return event.type === text
    case 'source':
      return isText(event.source, test)
    case 'application':
      return Object.entries(model.applications).some(
        ([own, sources]) => isText(own, test) && sources.includes(event.source),
      )
    case 'environment':
      return (ENVIRONMENTS[test.kind === 'equal' ? text : ''] ?? [null]).some((one) =>
        one === null ? isText(event.environment, test) : event.environment === one,
      )
    case 'host':
      return isText(event.host, test)
    case 'message':
      return has(event.message, test as TextTest)
    case 'template':
      return rootOf(model, event.templateId) === rootOf(model, text)
    case 'trace':
      return anyCase(event.traceId)
    case 'span':
      return anyCase(event.spanId)
    case 'id':
      return numberPasses(event.id, test, Number)
    case 'count':
      return numberPasses(event.count, test, Number)
    case 'new': {
      const spanMs = Number(text.slice(0, -1)) * (UNIT_S[text.slice(-1)] ?? 0) * 1000
      const first = model.firstSeenMs.get(rootOf(model, event.templateId))
      return first !== undefined && first >= model.endMs - spanMs
    }
    default:
      throw new Error(`${name} is no field`)
  }
}

function isText(own: string, test: ValueTest): boolean {
  if (test.kind === 'equal') return own === test.text
  if (test.kind === 'prefix') return own.startsWith(test.text)
  return test.kind === 'regex' && toRegex(test.pattern).test(own)
}

function numberPasses(own: number, test: ValueTest, of: (text: string) => number): boolean {
  if (test.kind === 'equal') return own === of(test.text)
  return test.kind === 'range' && own >= of(test.from) && own <= of(test.to)
}

function compares(a: number, operator: string, b: number): boolean {
  if (operator === '>') return a > b
  if (operator === '>=') return a >= b
  return operator === '<' ? a < b : a <= b
}

/** Whether an event is one of those that a query means. */
export function isMeant(event: ModelEvent, query: Query, model: Model): boolean {
  const values = () => leavesOf(event)
  switch (query.kind) {
    case 'and':
      return query.nodes.every((node) => isMeant(event, node, model))
    case 'or':
      return query.nodes.some((node) => isMeant(event, node, model))
    case 'not':
      return !isMeant(event, query.node, model)
    case 'text':
      return isAnywhere(event, query.test)
    case 'field': {
      const { field, tests } = query
      if (field.kind === 'builtin')
        return tests.some((test) => fieldPasses(event, field.name, test, model))
      const own = values().filter(([path]) => path === field.name)
      return own.some(([, text]) => tests.some((test) => isValue(text, test)))
    }
    case 'compare': {
      const { field, operator, value } = query
      if (field.kind === 'attribute')
        return values().some(([path, text]) => {
          const number = path === field.name ? toNumber(text) : null
          return number !== null && compares(number, operator, Number(value))
        })
      if (field.name === 'severity') {
        const own = SEVERITIES.indexOf(event.severity.toLowerCase())
        return compares(own, operator, SEVERITIES.indexOf(value))
      }
      return compares(field.name === 'id' ? event.id : event.count, operator, Number(value))
    }
    case 'has': {
      const { field } = query
      if (field.kind === 'attribute')
        return values().some(([path]) => path === field.name || path.startsWith(`${field.name}.`))
      return hasField(event, field.name, model)
    }
  }
}

function hasField(event: ModelEvent, name: string, model: Model): boolean {
  if (name === 'trace') return event.traceId !== ''
  if (name === 'span') return event.spanId !== ''
  if (name === 'host') return event.host !== ''
  if (name === 'environment') return event.environment !== ''
  if (name === 'template') return !/^0+$/.test(event.templateId)
  if (name === 'application')
    return Object.values(model.applications).some((sources) => sources.includes(event.source))
  return true
}
