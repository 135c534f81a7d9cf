import {
  classAt,
  classByte,
  DIGIT_BIT,
  HIGH_BIT,
  isDigit,
  JOINER,
  NOT_HEX_BIT,
  pathEnd,
  shortIpEnd,
  SPACE,
  WORD,
} from './bytes'
import { CHAIN_TOKENS, chainCount, chainEnd, readChain, textHash } from './chain'
import {
  FNV_PRIME,
  FNV_SEED,
  MAX_WORD_BYTES,
  SIGNED,
  SOFT,
  TIME,
  TOKEN_BYTES,
  VALUE,
  WORD_TOKEN,
} from './token'

/** A message is scanned this far; the rest is one value. */
const MAX_SCAN_BYTES: usize = 8192
/** Tokens of a message; the rest is one value. */
const MAX_TOKENS: u32 = 256

const MIX_LO: u32 = 0x9e3779b1
const MIX_HI: u32 = 0x85ebca77
const SPACE_MARK: u32 = 0x100
const VALUE_MARK: u32 = 0x5bd1e995
const TAIL_MARK: u32 = 0x2545f491

/** The shape's hash pair, of the message scanned last; the first is never 0. */
export let shapeLo: u32 = 0
export let shapeHi: u32 = 0

/** Punctuation that may begin a value. */
const MAY_BEGIN: usize = memory.data(256)

export function initScan(): void {
  const letters = '-+</\\.:'
  for (let i = 0; i < letters.length; i++) store<u8>(MAY_BEGIN + letters.charCodeAt(i), 1)
}

/**
 * One pass that masks and hashes: plain words and numbers are read in place, what joiners hold together as a
 * chain. Equal shapes (words and punctuation, values masked) of one seed get equal hashes.
 *
 * @param tokens where the tokens go, positions as offsets from `start`; 0 = only the hash is wanted
 * @returns the number of tokens
 */
export function scan(start: usize, limit: usize, seedLo: u32, seedHi: u32, tokens: usize): u32 {
  const end = limit - start > MAX_SCAN_BYTES ? wholeCharacters(start + MAX_SCAN_BYTES) : limit
  let lo = seedLo
  let hi = seedHi
  let space: u32 = 0
  let count: u32 = 0
  let words: u32 = 0
  let cut = end < limit
  let i = start
  while (i < end) {
    let c: u32 = load<u8>(i)
    let cls = classByte(c)
    if (cls == SPACE) {
      if (c == 10 && words > 0) {
        cut = hasText(i, end)
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
    let kind: u32 = 0
    let hash = VALUE_MARK
    if (cls < WORD) {
      const mayBe = load<u8>(MAY_BEGIN + c) == 1 && (c != 58 || byteAt(i + 1, end) == 58)
      const stop: isize = mayBe ? valueAtPunct(i, end, i == start) : 0
      if (stop == 0) {
        lo = (lo ^ (c | space)) * MIX_LO
        lo ^= lo >> 15
        hi = (hi ^ (c | space)) * MIX_HI
        hi ^= hi >> 13
        space = 0
        i++
        continue
      }
      kind = VALUE
      i = <usize>stop
      if (stop < 0) {
        // the sign of a number
        readChain(from + 1, end)
        i = chainEnd
        if (chainCount == 1) kind = SIGNED
      }
    } else {
      let length = wordEnd(from, end)
      const stop = (cls & DIGIT_BIT) != 0 ? numberEnd(from, end) : 0
      if (stop > 0) {
        i = stop
        kind = VALUE
        // 9:28:19, 09:28:19
        const colon = load<u8>(from + 1) == 58 ? from + 1 : from + 2
        if (colon < i && load<u8>(colon) == 58) kind = TIME
        words++
      } else {
        let bits: u32 = (cls & DIGIT_BIT) << 4
        let digits: u32 = 0
        let h: u32 = 0
        if (length < VECTOR) {
          bits |= wordBits
          digits = wordDigits
          h = shortHash(from, length)
          i += length
          c = i < end ? <u32>load<u8>(i) : 0
        } else {
          h = FNV_SEED
          do {
            h = (h ^ c) * FNV_PRIME
            bits |= cls
            digits += cls & DIGIT_BIT
            i++
            if (i >= end) {
              c = 0
              break
            }
            c = load<u8>(i)
            cls = classByte(c)
          } while (cls >= WORD)
          length = <u32>(i - from)
        }
        words++
        const plain = (bits & (HIGH_BIT | DIGIT_BIT)) != (HIGH_BIT | DIGIT_BIT)
        const seen = (bits & DIGIT_BIT) | (length > 4 ? 2 : 0)
        if (plain && (c == 32 || standsAlone(i, end, seen))) {
          const value =
            (bits & 16) != 0 ||
            digits > 1 ||
            ((bits & NOT_HEX_BIT) == 0 && length >= 8) ||
            length > <u32>MAX_WORD_BYTES
          hash = value ? VALUE_MARK ^ VALUE : h
          if (tokens != 0) {
            const text = digits == 0 ? WORD_TOKEN : SOFT
            const listed = value ? hash : textHash(from, i)
            push(tokens, count, value ? VALUE : text, from - start, i - start, listed)
          }
          count++
          lo = (lo ^ hash) * MIX_LO
          lo ^= lo >> 15
          hi = (hi ^ hash ^ space) * MIX_HI
          hi ^= hi >> 13
          space = 0
          if (c == 32) {
            space = SPACE_MARK
            i++
          }
          continue
        } else {
          readChain(from, end)
          i = chainEnd
          kind = chainCount == 1 ? load<u32>(CHAIN_TOKENS) : 0
          hash = kind < VALUE ? load<u32>(CHAIN_TOKENS, 12) : VALUE_MARK
        }
      }
    }
    if (kind == 0) {
      for (let part: u32 = 0; part < chainCount; part++) {
        const at = CHAIN_TOKENS + part * TOKEN_BYTES
        const partKind = load<u32>(at)
        hash = partKind == WORD_TOKEN ? load<u32>(at, 12) : VALUE_MARK
        const to = <usize>load<u32>(at, 8)
        if (tokens != 0) push(tokens, count, partKind, <usize>load<u32>(at, 4) - start, to - start, hash)
        count++
        // with the joiner behind the part
        lo = (lo ^ hash) * MIX_LO
        lo ^= lo >> 15
        hi = (hi ^ hash ^ space ^ (to < i ? <u32>load<u8>(to) : 0)) * MIX_HI
        hi ^= hi >> 13
        space = 0
      }
      continue
    }
    if (kind >= VALUE) hash = VALUE_MARK ^ kind
    if (tokens != 0) push(tokens, count, kind, from - start, i - start, hash)
    count++
    lo = (lo ^ hash) * MIX_LO
    lo ^= lo >> 15
    hi = (hi ^ hash ^ space) * MIX_HI
    hi ^= hi >> 13
    space = 0
  }
  if (cut) {
    lo ^= TAIL_MARK
    if (tokens != 0) push(tokens, count, VALUE, i - start, limit - start, VALUE_MARK)
    count++
  }
  lo = avalanche(lo)
  shapeLo = lo == 0 ? 1 : lo
  shapeHi = avalanche(hi ^ count)
  return count
}

/** bytes that are looked at together */
const VECTOR: u32 = 16
/** of the bytes that `wordEnd` counted last: their classes together, how many are digits, how many before any other */
let wordBits: u32 = 0
let wordDigits: u32 = 0
let firstDigits: u32 = 0

/** How many of the first bytes are of a word, which goes on behind them when they are 16. */
@inline
function wordEnd(from: usize, end: usize): u32 {
  const bytes = v128.load(from)
  const letter = i8x16.sub(v128.or(bytes, i8x16.splat(0x20)), i8x16.splat(0x61))
  const digit = i8x16.lt_u(i8x16.sub(bytes, i8x16.splat(0x30)), i8x16.splat(10))
  const high = i8x16.lt_s(bytes, i8x16.splat(0))
  const hex = v128.or(digit, i8x16.lt_u(letter, i8x16.splat(6)))
  const others = v128.or(i8x16.eq(bytes, i8x16.splat(0x5f)), i8x16.eq(bytes, i8x16.splat(0x7e)))
  const plain = v128.or(digit, i8x16.lt_u(letter, i8x16.splat(26)))
  const word: u32 = i8x16.bitmask(v128.or(v128.or(plain, high), others))
  const length = min<u32>(ctz<u32>(~word), <u32>min<usize>(end - from, VECTOR))
  const part = (<u32>1 << length) - 1
  const digits = <u32>i8x16.bitmask(digit) & part
  firstDigits = ctz<u32>(~digits)
  wordDigits = popcnt<u32>(digits)
  wordBits =
    WORD |
    (wordDigits != 0 ? DIGIT_BIT : 0) |
    ((~<u32>i8x16.bitmask(hex) & part) != 0 ? NOT_HEX_BIT : 0) |
    ((<u32>i8x16.bitmask(high) & part) != 0 ? HIGH_BIT : 0)
  return length
}

/** Of a word of 1 to 15 bytes. */
@inline
function shortHash(from: usize, length: u32): u32 {
  const first = load<u64>(from)
  let h: u64
  // what lies behind the word is readable, and shifted out
  if (length < 8) h = (first & ((<u64>1 << (length * 8)) - 1)) * 0x9e3779b97f4a7c15
  else h = first * 0x9e3779b97f4a7c15 + load<u64>(from + length - 8) * 0xd6e8feb86659fd93
  h += length
  return <u32>(h >> 32) ^ <u32>h
}

/**
 * Behind a plain number, a dotted or a colon-joined one (`7`, `10.0.0.1:80`, `15:42:50`); 0 when it is part
 * of something else.
 */
function numberEnd(from: usize, end: usize): usize {
  let i = from + firstDigits
  for (; i < end; i++) {
    const c: u32 = load<u8>(i)
    if (isDigit(c)) continue
    if ((c != 46 && c != 58) || i + 1 >= end || !isDigit(load<u8>(i + 1))) break
  }
  return standsAlone(i, end, 1) ? i : 0
}

/**
 * Whether what follows a word or number at `i` has no say in what it is.
 * @param seen bit 0: it has a digit, bit 1: it has 5 bytes and more
 */
function standsAlone(i: usize, end: usize, seen: u32): bool {
  if (i >= end) return true
  const c: u32 = load<u8>(i)
  const kind = classByte(c)
  if (kind >= WORD) return false
  const next = byteAt(i + 1, end)
  if (c == 58) return next <= 32 || (seen == 2 && next != 47)
  if (c == 61) return (seen & 1) == 0
  return kind != JOINER || (!isWord(next) && c != 47)
}

/**
 * A value that begins with punctuation: a path (`/var`, `./a`, `\\host`), `<*>`, `::1`, or the sign of a
 * number.
 * @returns where it ends, -1 for a sign, 0 when it is punctuation
 */
function valueAtPunct(i: usize, end: usize, first: bool): isize {
  const c: u32 = load<u8>(i)
  const next = byteAt(i + 1, end)
  if (c == 45 || c == 43) return isDigit(next) ? -1 : 0
  if (c == 58)
    return next == 58 && (first || !isWord(load<u8>(i - 1))) ? <isize>shortIpEnd(i, end) : 0
  if (c == 60) return valueAtAngle(i, end, first)
  return <isize>pathAtPunct(i, end)
}

/** `<*>`, and `<` as the sign of `<1 sec` */
function valueAtAngle(i: usize, end: usize, first: bool): isize {
  const next = byteAt(i + 1, end)
  if (next == 42) return i + 3 <= end && load<u8>(i + 2) == 62 ? <isize>(i + 3) : 0
  return isDigit(next) && (first || load<u8>(i - 1) == 32) ? -1 : 0
}

/** `/var`, `/.cache`, `\\\\host`, `./a`, `../a` */
function pathAtPunct(i: usize, end: usize): usize {
  const c: u32 = load<u8>(i)
  const next = byteAt(i + 1, end)
  if (c == 47) {
    if (next == 32) return opensHttp(i + 2, end) ? i + 1 : 0
    return isWord(next) || next == 46 || next == 45 ? pathEnd(i + 1, end) : 0
  }
  if (c == 92) return next == 92 && isWord(byteAt(i + 2, end)) ? pathEnd(i, end) : 0
  const slash = next == 46 ? i + 2 : i + 1
  const opens = slash + 1 < end && load<u8>(slash) == 47 && isWord(load<u8>(slash + 1))
  return opens ? pathEnd(slash, end) : 0
}

/** `HTTP/` behind the root as a request's target: `GET / HTTP/1.1` */
function opensHttp(i: usize, end: usize): bool {
  return i + 4 < end && load<u8>(i) == 72 && load<u8>(i + 1) == 84 && load<u8>(i + 4) == 47
}

@inline
function byteAt(i: usize, end: usize): u32 {
  return i < end ? <u32>load<u8>(i) : 0
}

@inline
function isWord(c: u32): bool {
  return classByte(c) >= WORD
}

export function avalanche(hash: u32): u32 {
  let h = (hash ^ (hash >> 16)) * 0x7feb352d
  h = (h ^ (h >> 15)) * 0x846ca68b
  return h ^ (h >> 16)
}

/** `end`, or what is left of it when it cuts through a UTF-8 character. */
function wholeCharacters(end: usize): usize {
  let i = end
  while (i > end - 4 && (load<u8>(i) & 0xc0) == 0x80) i--
  return i
}

/** Whether anything but blanks follows. */
function hasText(from: usize, end: usize): bool {
  for (let i = from; i < end; i++) if (classAt(i) != SPACE) return true
  return false
}

function push(tokens: usize, index: u32, kind: u32, from: usize, to: usize, hash: u32): void {
  const at = tokens + index * TOKEN_BYTES
  store<u32>(at, kind)
  store<u32>(at, <u32>from, 4)
  store<u32>(at, <u32>to, 8)
  store<u32>(at, hash, 12)
}
