/** The placeholder of a value in the text of a template. */
export const VALUE = '<*>'

const PIECE = /<\*>|[\w\u0080-\uffff]+|\s|[^\w\s\u0080-\uffff]/g
/** Short units of size, time and rate. A word such as `bytes` stays text, because it names what is counted. */
export const UNITS = (
  'B b K M G T k KB MB GB TB PB kB kb mb gb tb KiB MiB GiB TiB kbit Mbit Kbps Mbps Gbps ' +
  'Hz kHz MHz GHz ns us ms s sec secs min mins h hr hrs msec usec'
).split(' ')

const isWordPiece = (piece: string): boolean => /^[\w\u0080-\uffff]/.test(piece)
/** Joins values that are adjacent or joined by a dot. */
export const joinValues = (text: string): string =>
  text.includes('><') || text.includes('>.<') ? text.replaceAll(/<\*>(?:\.?<\*>)+/g, VALUE) : text

/** Generalises two gaps to their common beginning and end with a value between. */
export function mergeGaps(a: string, b: string): string {
  if (a === b) return a
  const x = a.match(PIECE) ?? []
  const y = b.match(PIECE) ?? []
  return joinValues(mergeInPlace(x, y) ?? mergeEnds(x, y))
}

/** Whether two gaps have the same punctuation and blanks and differ in words and values only. */
export const sameLayout = (a: string, b: string): boolean =>
  a === b || mergeInPlace(a.match(PIECE) ?? [], b.match(PIECE) ?? []) !== null

/** Generalises two gaps of the same layout part by part, so that the layout stays. */
function mergeInPlace(x: readonly string[], y: readonly string[]): string | null {
  if (x.length !== y.length) return null
  let merged = ''
  for (const [i, piece] of x.entries()) {
    const other = y[i] ?? ''
    if (piece === other) {
      merged += piece
      continue
    }
    if (!isValuePiece(piece) || !isValuePiece(other)) return null
    merged += VALUE
  }
  return merged
}

const isValuePiece = (piece: string): boolean => piece === VALUE || isWordPiece(piece)

function mergeEnds(x: readonly string[], y: readonly string[]): string {
  const shorter = Math.min(x.length, y.length)
  let head = 0
  while (head < shorter && x[head] === y[head]) head++
  // An empty value has a single blank between its neighbours.
  const free = shorter - head + (x[head - 1] === ' ' ? 1 : 0)
  let tail = 0
  while (tail < free && isSame(x.at(-1 - tail), y.at(-1 - tail))) tail++
  return x.slice(0, head).join('') + VALUE + x.slice(x.length - tail).join('')
}

const isSame = (a: string | undefined, b: string | undefined): boolean => a !== undefined && a === b

const squeeze = (text: string): string => ` ${text.trim().replaceAll(/\s+/g, ' ')} `

/** Counts the blank that both sides of an empty value share. */
const sharedBlank = (before: string, behind: string): number =>
  before.endsWith(' ') && behind.startsWith(' ') ? 1 : 0

/**
 * Returns the values of a message at each `<*>` of a template's text, in order; null when the message is not of the
 * template. Runs of blanks count as one blank; a value may be empty or contain blanks.
 */
export function templateValues(text: string, message: string): string[] | null {
  const [first = '', ...literals] = squeeze(text).split(VALUE)
  const body = squeeze(message)
  const last = literals.pop()
  if (last === undefined) return first === body ? [] : null
  if (!body.startsWith(first) || !body.endsWith(last)) return null
  const values: string[] = []
  let at = first.length
  let before = first
  for (const literal of literals) {
    const found = body.indexOf(literal, at - sharedBlank(before, literal))
    if (found < 0) return null
    values.push(body.slice(at, Math.max(at, found)).trim())
    at = found + literal.length
    before = literal
  }
  const rest = body.length - last.length
  if (rest < at - sharedBlank(before, last)) return null
  values.push(body.slice(at, Math.max(at, rest)).trim())
  return values
}

/** Whether a message belongs to the template with this text. */
export const matches = (text: string, message: string): boolean =>
  templateValues(text, message) !== null

const OPENING: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' }
const WIDE = /["'`([{=]<\*>/
const TAIL = /: <\*>(?:\.?$|[)\]}]|"(?:$|[\s,}]))/

/**
 * Whether a value of a gap may contain any words: in quotes, in brackets, after `=`, and, if words
 * were values before, after `: ` at the end of the message or of brackets.
 */
export const isWide = (gap: string, mayBeTail: boolean): boolean =>
  WIDE.test(gap) || (mayBeTail && TAIL.test(gap))

/**
 * Whether a gap covers a layout when its values may contain words and punctuation, but not the end
 * of their quotes or brackets.
 */
export function coversWide(gap: string, layout: string): boolean {
  const literals = gap.split(VALUE)
  const first = literals[0] ?? ''
  if (!layout.startsWith(first)) return false
  let at = first.length
  for (let i = 1; i < literals.length; i++) {
    const literal = literals[i] ?? ''
    const open = literals[i - 1]?.at(-1) ?? ''
    const to =
      i + 1 < literals.length ? layout.indexOf(literal, at) : layout.length - literal.length
    if (to < at || !layout.startsWith(literal, to)) return false
    const inArray = (literals[i - 1] ?? '').endsWith('["') && literal.startsWith('"]')
    if (!inArray && !mayBeContent(layout.slice(at, to), open, literal[0] ?? '')) return false
    at = to + literal.length
  }
  return true
}

function mayBeContent(content: string, open: string, close: string): boolean {
  if ((open === close || open === ' ') && (close === '"' || close === "'" || close === '`')) {
    return !hasEndOfQuote(content, open)
  }
  if (open === '=') return !hasFurtherName(content)
  const opening = OPENING[close]
  return opening === undefined || isBalanced(content, opening, close)
}

/** Whether another name with `=` follows a blank or comma. */
function hasFurtherName(content: string): boolean {
  return content.split(/\s/).some((word, i) => {
    const sign = word.lastIndexOf('=')
    const comma = word.indexOf(',')
    return sign >= 1 && (i > 0 || (comma >= 0 && sign >= comma + 2))
  })
}

function hasEndOfQuote(content: string, quote: string): boolean {
  for (let at = content.indexOf(quote); at >= 0; at = content.indexOf(quote, at + 1)) {
    if (content[at - 1] !== '\\' && /^$|^[\s)\]},:;]/.test(content.slice(at + 1, at + 2)))
      return true
  }
  return false
}

function isBalanced(content: string, open: string, close: string): boolean {
  let depth = 0
  for (const c of content) {
    if (c === open) depth++
    else if (c === close && depth-- === 0) return false
  }
  return depth === 0
}
