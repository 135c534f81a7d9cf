import {
  byteAt,
  CLASS,
  classAt,
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

/** set when a word begins with a digit */
const FIRST_DIGIT = 16

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
/* oxlint-disable max-params, complexity, max-lines-per-function, max-depth -- hot path: one loop over local numbers (bench/micro/mining.bench.ts) */
function scan(
  bytes: Uint8Array,
  start: number,
  limit: number,
  out: Int32Array,
  tokens: Int32Array,
): number {
  const record = tokens.length > 0
  // module bindings are looked up at each use: 2.4 times slower
  const classes = CLASS
  const mayBegin = MAY_BEGIN_VALUE
  const parts = chain
  const wordClass = WORD
  const spaceClass = SPACE
  const digitBit = DIGIT_BIT
  const notHexBit = NOT_HEX_BIT
  const highBit = HIGH_BIT
  const firstDigit = FIRST_DIGIT
  const valueKind = TOKEN.value
  const timeKind = TOKEN.time
  const prime = FNV_PRIME
  const seed = FNV_SEED
  const mixLo = MIX_LO
  const mixHi = MIX_HI
  const spaceMark = SPACE_MARK
  const valueMark = VALUE_MARK
  const maxWord = MAX_WORD_BYTES
  const maxTokens = MAX_TOKENS
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
    let cls = classes[c] ?? 0
    if (cls === spaceClass) {
      if (c === 10 && words > 0) {
        cut = hasText(bytes, i, end)
        break
      }
      space = spaceMark
      i++
      continue
    }
    if (count >= maxTokens) {
      cut = true
      break
    }
    const from = i
    let kind = 0
    let hash = valueMark
    if (cls < wordClass) {
      const mayBe = mayBegin[c] === 1 && (c !== 58 || bytes[i + 1] === 58)
      const stop = mayBe ? valueAtPunct(bytes, i, end, i === start) : 0
      if (stop === 0) {
        lo = Math.imul(lo ^ (c | space), mixLo)
        lo ^= lo >>> 15
        hi = Math.imul(hi ^ (c | space), mixHi)
        hi ^= hi >>> 13
        space = 0
        i++
        continue
      }
      kind = valueKind
      i = stop
      if (stop < 0) {
        // the sign of a number
        parts.read(bytes, from + 1, end)
        i = parts.end
        if (parts.count === 1) kind = TOKEN.signed
      }
    } else if ((cls & digitBit) !== 0 && (i = numberEnd(bytes, from, end)) > 0) {
      kind = valueKind
      // 9:28:19, 09:28:19
      const colon = bytes[from + 1] === 58 ? from + 1 : from + 2
      if (colon < i && bytes[colon] === 58) kind = timeKind
      words++
    } else {
      i = from
      let bits = (cls & digitBit) << 4
      let h = seed
      do {
        h = Math.imul(h ^ c, prime)
        bits |= cls
        i = (i + 1) | 0
        if (i >= end) {
          c = 0
          break
        }
        c = bytes[i] ?? 0
        cls = classes[c] ?? 0
      } while (cls >= wordClass)
      const digits = (bits & digitBit) === 0 ? 0 : countDigits(bytes, from, i)
      words++
      const plain = (bits & (highBit | digitBit)) !== (highBit | digitBit)
      const seen = (bits & digitBit) | (i - from > 4 ? 2 : 0)
      if (plain && (c === 32 || standsAlone(bytes, i, end, seen))) {
        const value =
          (bits & firstDigit) !== 0 ||
          digits > 1 ||
          ((bits & notHexBit) === 0 && i - from >= 8) ||
          i - from > maxWord
        hash = value ? valueMark ^ valueKind : h
        if (record) {
          const text = digits === 0 ? TOKEN.word : TOKEN.soft
          push(tokens, count, value ? valueKind : text, from, i, hash)
        }
        count++
        lo = Math.imul(lo ^ hash, mixLo)
        lo ^= lo >>> 15
        hi = Math.imul(hi ^ hash ^ space, mixHi)
        hi ^= hi >>> 13
        space = 0
        if (c === 32) {
          space = spaceMark
          i++
        }
        continue
      } else {
        parts.read(bytes, from, end)
        i = parts.end
        kind = parts.count === 1 ? (parts.tokens[0] ?? 0) : 0
        hash = kind < valueKind ? (parts.tokens[3] ?? 0) : valueMark
      }
    }
    if (kind === 0) {
      for (let part = 0; part < parts.count; part++) {
        const at = part * TOKEN_STRIDE
        const partKind = parts.tokens[at] ?? 0
        hash = partKind === TOKEN.word ? (parts.tokens[at + 3] ?? 0) : valueMark
        const to = parts.tokens[at + 2] ?? 0
        if (record) push(tokens, count, partKind, parts.tokens[at + 1] ?? 0, to, hash)
        count++
        // with the joiner behind the part
        lo = Math.imul(lo ^ hash, mixLo)
        lo ^= lo >>> 15
        hi = Math.imul(hi ^ hash ^ space ^ (to < i ? (bytes[to] ?? 0) : 0), mixHi)
        hi ^= hi >>> 13
        space = 0
      }
      continue
    }
    if (kind >= valueKind) hash = valueMark ^ kind
    if (record) push(tokens, count, kind, from, i, hash)
    count++
    lo = Math.imul(lo ^ hash, mixLo)
    lo ^= lo >>> 15
    hi = Math.imul(hi ^ hash ^ space, mixHi)
    hi ^= hi >>> 13
    space = 0
  }
  if (cut) {
    lo ^= TAIL_MARK
    if (record) push(tokens, count, valueKind, i, limit, valueMark)
    count++
  }
  lo = avalanche(lo)
  out[0] = lo === 0 ? 1 : lo
  out[1] = avalanche(hi ^ count)
  return count
}

/* oxlint-enable max-params, complexity, max-lines-per-function, max-depth */

function countDigits(bytes: Uint8Array, from: number, to: number): number {
  let digits = 0
  for (let i = from; i < to; i++) digits += (CLASS[bytes[i] ?? 0] ?? 0) & DIGIT_BIT
  return digits
}

/**
 * Index behind a plain number, a dotted or a colon-joined one (`7`, `10.0.0.1:80`, `15:42:50`); 0
 * when it is part of something else.
 */
function numberEnd(bytes: Uint8Array, from: number, end: number): number {
  let i = from + 1
  for (; i < end; i++) {
    const c = byteAt(bytes, i)
    if (isDigit(c)) continue
    if ((c !== 46 && c !== 58) || i + 1 >= end || !isDigit(byteAt(bytes, i + 1))) break
  }
  return standsAlone(bytes, i, end, 1) ? i : 0
}

/**
 * Whether what follows a word or number at `i` has no say in what it is.
 * @param seen bit 0: it has a digit, bit 1: it has 5 bytes and more
 */
function standsAlone(bytes: Uint8Array, i: number, end: number, seen: number): boolean {
  if (i >= end) return true
  const c = byteAt(bytes, i)
  const kind = classAt(bytes, i)
  if (kind >= WORD) return false
  const next = i + 1 < end ? byteAt(bytes, i + 1) : 0
  if (c === 58) return next <= 32 || (seen === 2 && next !== 47)
  if (c === 61) return (seen & 1) === 0
  return kind !== JOINER || (!isWord(next) && c !== 47)
}

/** Whether punctuation may begin a value. */
const MAY_BEGIN_VALUE = Uint8Array.from({ length: 256 }, (_, c) =>
  '-+</\\.:'.includes(String.fromCharCode(c)) ? 1 : 0,
)

/**
 * A value that begins with punctuation: a path (`/var`, `./a`, `\\host`), `<*>`, `::1`, or the sign
 * of a number.
 * @returns the index behind it, -1 for a sign, 0 when it is punctuation
 */
function valueAtPunct(bytes: Uint8Array, i: number, end: number, first: boolean): number {
  const c = bytes[i]
  const next = i + 1 < end ? byteAt(bytes, i + 1) : 0
  if (c === 45 || c === 43) return isDigit(next) ? -1 : 0
  if (c === 58)
    return next === 58 && (first || !isWord(bytes[i - 1])) ? shortIpEnd(bytes, i, end) : 0
  if (c === 60) return valueAtAngle(bytes, i, end, first)
  return pathAtPunct(bytes, i, end)
}

/** `<*>`, and `<` as the sign of `<1 sec` */
function valueAtAngle(bytes: Uint8Array, i: number, end: number, first: boolean): number {
  const next = i + 1 < end ? byteAt(bytes, i + 1) : 0
  if (next === 42) return bytes[i + 2] === 62 && i + 3 <= end ? i + 3 : 0
  return isDigit(next) && (first || bytes[i - 1] === 32) ? -1 : 0
}

/** `/var`, `/.cache`, `\\\\host`, `./a`, `../a` */
function pathAtPunct(bytes: Uint8Array, i: number, end: number): number {
  const next = i + 1 < end ? byteAt(bytes, i + 1) : 0
  if (bytes[i] === 47) {
    if (next === 32) return opensHttp(bytes, i + 2, end) ? i + 1 : 0
    return isWord(next) || next === 46 || next === 45 ? pathEnd(bytes, i + 1, end) : 0
  }
  if (bytes[i] === 92) return next === 92 && isWord(bytes[i + 2]) ? pathEnd(bytes, i, end) : 0
  const slash = next === 46 ? i + 2 : i + 1
  const opens = slash + 1 < end && bytes[slash] === 47 && isWord(bytes[slash + 1])
  return opens ? pathEnd(bytes, slash, end) : 0
}

/** `HTTP/` behind the root as a request's target: `GET / HTTP/1.1` */
function opensHttp(bytes: Uint8Array, i: number, end: number): boolean {
  return i + 4 < end && bytes[i] === 72 && bytes[i + 1] === 84 && bytes[i + 4] === 47
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
