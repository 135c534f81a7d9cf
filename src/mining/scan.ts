import {
  CLASS,
  DIGIT_BIT,
  HIGH_BIT,
  JOINER,
  NOT_HEX_BIT,
  pathEnd,
  shortIpEnd,
  SPACE,
  WORD,
} from './bytes.js'
import { Chain } from './chain.js'
import { FNV_PRIME, FNV_SEED, isDigit, MAX_WORD_BYTES, TOKEN, TOKEN_STRIDE } from './token.js'

/** A message is scanned this far; the rest is one value. */
export const MAX_SCAN_BYTES = 8192
/** Tokens of a message; the rest is one value. */
export const MAX_TOKENS = 256
/** A chain adds several tokens at once. */
const TOKEN_SLACK = 32

const MIX_LO = 0x9e3779b1 | 0
const MIX_HI = 0x85ebca77 | 0
const SPACE_MARK = 0x100
const VALUE_MARK = 0x5bd1e995
const TAIL_MARK = 0x2545f491

const NO_TOKENS = new Int32Array(0)
/** Scratch of the scan, which is never entered twice. */
const chain = new Chain()

/** A token array for `scanTokens`. */
export const tokenArray = (): Int32Array =>
  new Int32Array((MAX_TOKENS + TOKEN_SLACK) * TOKEN_STRIDE)

/** Writes the seed of a source to out[0..1]; equal shapes of two sources then differ. */
export function sourceSeed(name: string, out: Int32Array): void {
  let lo = FNV_SEED
  let hi = MIX_HI
  for (let i = 0; i < name.length; i++) {
    const code = name.charCodeAt(i)
    lo = Math.imul(lo ^ code, FNV_PRIME)
    hi = Math.imul(hi ^ code, MIX_LO)
    hi ^= hi >>> 15
  }
  out[0] = avalanche(lo)
  out[1] = avalanche(hi ^ lo)
}

/**
 * Writes the hash of a message's shape (its words and punctuation, values masked) to out[0..1].
 * Equal shapes belong to the same template. out[0] is never 0. One pass, no allocation; hot path
 * (bench/micro/mining.bench.ts).
 */
// oxlint-disable-next-line max-params -- the hot path takes numbers, not an object per message
export function scanShape(
  bytes: Uint8Array,
  start: number,
  end: number,
  seedLo: number,
  seedHi: number,
  out: Int32Array,
): void {
  out[0] = seedLo
  out[1] = seedHi
  scan(bytes, start, end, out, NO_TOKENS)
}

/**
 * The same scan, which also lists the tokens; see `TOKEN_STRIDE`.
 * @returns the number of tokens
 */
export function scanTokens(bytes: Uint8Array, tokens: Int32Array): number {
  return scan(bytes, 0, bytes.length, new Int32Array(2), tokens)
}

/**
 * The scanner: one pass that masks and hashes. Plain words and numbers are read in place, what
 * joiners hold together by `Chain`.
 */
// oxlint-disable-next-line max-params, complexity, max-lines-per-function -- hot path: one loop over local numbers (bench/micro/mining.bench.ts)
function scan(
  bytes: Uint8Array,
  start: number,
  limit: number,
  out: Int32Array,
  tokens: Int32Array,
): number {
  const record = tokens.length > 0
  const end =
    limit - start > MAX_SCAN_BYTES ? wholeCharacters(bytes, start + MAX_SCAN_BYTES) : limit
  let lo = out[0] ?? 0
  let hi = out[1] ?? 0
  let space = 0
  let count = 0
  let words = 0
  let cut = end < limit
  let i = start
  while (i < end) {
    let c = bytes[i] ?? 0
    let cls = CLASS[c] ?? 0
    if (cls === SPACE) {
      if (c === 10 && words > 0) {
        cut = hasText(bytes, i, end)
        break
      }
      space = SPACE_MARK
      i++
      continue
    }
    if (count >= MAX_TOKENS) {
      cut = true
      break
    }
    const from = i
    let kind = 0
    let hash = VALUE_MARK
    if (cls < WORD) {
      const stop = c < 128 && MAY_BEGIN_VALUE[c] === 1 ? valueAtPunct(bytes, i, end) : 0
      if (stop === 0) {
        lo = Math.imul(lo ^ (c | space), MIX_LO)
        lo ^= lo >>> 15
        hi = Math.imul(hi ^ (c | space), MIX_HI)
        hi ^= hi >>> 13
        space = 0
        i++
        continue
      }
      kind = TOKEN.value
      i = stop
      if (stop < 0) {
        // the sign of a number
        chain.read(bytes, from + 1, end)
        i = chain.end
        if (chain.count === 1) kind = TOKEN.signed
      }
    } else {
      let digits = 0
      let bits = 0
      let h = FNV_SEED
      do {
        h = Math.imul(h ^ c, FNV_PRIME)
        digits += cls & DIGIT_BIT
        bits |= cls
        i++
        c = i < end ? (bytes[i] ?? 0) : 0
        cls = CLASS[c] ?? 0
      } while (cls >= WORD)
      if (standsAlone(bytes, i, end, digits, bits)) {
        const length = i - from
        if (
          isDigit(bytes[from] ?? 0) ||
          digits > 1 ||
          (length >= 8 && (bits & NOT_HEX_BIT) === 0) ||
          length > MAX_WORD_BYTES
        ) {
          kind = TOKEN.value
        } else {
          kind = digits === 0 ? TOKEN.word : TOKEN.soft
          hash = h
          words++
        }
      } else {
        chain.read(bytes, from, end)
        i = chain.end
        kind = chain.count === 1 ? (chain.tokens[0] ?? 0) : 0
        hash = kind < TOKEN.value ? (chain.tokens[3] ?? 0) : VALUE_MARK
        words++
      }
    }
    if (kind === 0) {
      for (let part = 0; part < chain.count; part++) {
        const at = part * TOKEN_STRIDE
        const partKind = chain.tokens[at] ?? 0
        hash = partKind === TOKEN.word ? (chain.tokens[at + 3] ?? 0) : VALUE_MARK
        const to = chain.tokens[at + 2] ?? 0
        if (record) push(tokens, count, partKind, chain.tokens[at + 1] ?? 0, to, hash)
        count++
        // with the joiner behind the part
        lo = Math.imul(lo ^ hash, MIX_LO)
        lo ^= lo >>> 15
        hi = Math.imul(hi ^ hash ^ space ^ (to < i ? (bytes[to] ?? 0) : 0), MIX_HI)
        hi ^= hi >>> 13
        space = 0
      }
      continue
    }
    if (kind >= TOKEN.value) hash = VALUE_MARK + kind
    if (record) push(tokens, count, kind, from, i, hash)
    count++
    lo = Math.imul(lo ^ hash, MIX_LO)
    lo ^= lo >>> 15
    hi = Math.imul(hi ^ hash ^ space, MIX_HI)
    hi ^= hi >>> 13
    space = 0
  }
  if (cut) {
    lo ^= TAIL_MARK
    if (record) push(tokens, count, TOKEN.value, i, limit, VALUE_MARK)
    count++
  }
  lo = avalanche(lo)
  out[0] = lo === 0 ? 1 : lo
  out[1] = avalanche(hi ^ count)
  return count
}

/** Whether what follows a word or number at `i` has no say in what it is. */
// oxlint-disable-next-line max-params -- inlined into the scan
function standsAlone(
  bytes: Uint8Array,
  i: number,
  end: number,
  digits: number,
  bits: number,
): boolean {
  if (i >= end) return (bits & HIGH_BIT) === 0 || digits === 0
  const c = bytes[i] ?? 0
  if (c <= 32) return (bits & HIGH_BIT) === 0 || digits === 0
  if ((bits & HIGH_BIT) !== 0) return false
  const next = i + 1 < end ? (bytes[i + 1] ?? 0) : 0
  if (c === 58) return next <= 32
  if (c === 61) return digits === 0
  return CLASS[c] !== JOINER || ((CLASS[next] ?? 0) < WORD && c !== 47)
}

/** Whether punctuation may begin a value. */
const MAY_BEGIN_VALUE = Uint8Array.from({ length: 128 }, (_, c) =>
  '-+</\\.:'.includes(String.fromCharCode(c)) ? 1 : 0,
)

/**
 * A value that begins with punctuation: a path (`/var`, `./a`, `\\host`), `<*>`, `::1`, or the sign
 * of a number.
 * @returns the index behind it, -1 for a sign, 0 when it is punctuation
 */
function valueAtPunct(bytes: Uint8Array, i: number, end: number): number {
  const c = bytes[i]
  const next = i + 1 < end ? (bytes[i + 1] ?? 0) : 0
  if (c === 45 || c === 43) return isDigit(next) ? -1 : 0
  if (c === 58) return next === 58 && !isWord(bytes[i - 1]) ? shortIpEnd(bytes, i, end) : 0
  if (c === 60) return valueAtAngle(bytes, i, end)
  return pathAtPunct(bytes, i, end)
}

/** `<*>`, and `<` as the sign of `<1 sec` */
function valueAtAngle(bytes: Uint8Array, i: number, end: number): number {
  const next = i + 1 < end ? (bytes[i + 1] ?? 0) : 0
  if (next === 42) return bytes[i + 2] === 62 && i + 3 <= end ? i + 3 : 0
  return isDigit(next) && (i === 0 || bytes[i - 1] === 32) ? -1 : 0
}

/** `/var`, `/.cache`, `\\host`, `./a`, `../a` */
function pathAtPunct(bytes: Uint8Array, i: number, end: number): number {
  const c = bytes[i]
  const next = i + 1 < end ? (bytes[i + 1] ?? 0) : 0
  if (c === 47) {
    return isWord(next) || next === 46 || next === 45 ? pathEnd(bytes, i + 1, end) : 0
  }
  if (c === 92) return next === 92 && isWord(bytes[i + 2]) ? pathEnd(bytes, i, end) : 0
  const slash = next === 46 ? i + 2 : i + 1
  const opens = slash + 1 < end && bytes[slash] === 47 && isWord(bytes[slash + 1])
  return opens ? pathEnd(bytes, slash, end) : 0
}

const isWord = (c: number | undefined): boolean => (CLASS[c ?? 0] ?? 0) >= WORD

function avalanche(hash: number): number {
  let h = Math.imul(hash ^ (hash >>> 16), 0x7feb352d)
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b)
  return h ^ (h >>> 16)
}

/** `end`, or what is left of it when it cuts through a UTF-8 character. */
function wholeCharacters(bytes: Uint8Array, end: number): number {
  let i = end
  while (i > end - 4 && ((bytes[i] ?? 0) & 0xc0) === 0x80) i--
  return i
}

/** Whether anything but blanks follows. */
function hasText(bytes: Uint8Array, from: number, end: number): boolean {
  for (let i = from; i < end; i++) if (CLASS[bytes[i] ?? 0] !== SPACE) return true
  return false
}

// oxlint-disable-next-line max-params -- as the scanner
function push(
  tokens: Int32Array,
  index: number,
  kind: number,
  from: number,
  to: number,
  hash: number,
): void {
  const at = index * TOKEN_STRIDE
  tokens[at] = kind
  tokens[at + 1] = from
  tokens[at + 2] = to
  tokens[at + 3] = hash
}
