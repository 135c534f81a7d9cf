/*
 * Masks a message: splits it into tokens (words, values such as numbers, times and paths, and punctuation) in one pass
 * over its bytes. Messages that differ in values only have one signature, by which their template is found.
 */
import {
  classAt,
  classByte,
  DIGIT_BIT,
  digitBits,
  groupsAt,
  hexLetterBits,
  highBits,
  isDigit,
  JOINER,
  pathEnd,
  shortIpEnd,
  SPACE,
  VECTOR,
  WORD,
  wordBytes,
  wordDigits,
  wordEnd,
  wordHigh,
  wordNotHex,
} from './bytes'
import { CHAIN_TOKENS, chainCount, chainEnd, readChain, textHash } from './chain'
import { finish, hashOfShort, hashOfWord, step } from './hash'
import * as layout from '../layout'
import {
  MAX_WORD_BYTES,
  SIGNED,
  SOFT,
  TIME,
  TOKEN_BYTES,
  VALUE,
  WORD_TOKEN,
} from './token'

const MAX_SCAN_BYTES: usize = layout.MAX_SCAN_BYTES
const MAX_TOKENS: u32 = layout.MAX_TOKENS

const SPACE_MARK: u32 = 0x100
const VALUE_MARK: u32 = 0x5bd1e995
const TAIL_MARK: u64 = 0x2545f491

/** Signature of the message scanned last; the first half is never 0. */
export let signatureLo: u32 = 0
export let signatureHi: u32 = 0

/** Punctuation that may begin a value. */
const MAY_BEGIN: usize = memory.data(256)

export function initScan(): void {
  const chars = '-+</\\.:'
  for (let i = 0; i < chars.length; i++) store<u8>(MAY_BEGIN + chars.charCodeAt(i), 1)
}

/**
 * Masks and hashes a message in one pass: plain words and numbers are read in place, joined ones by `readChain`.
 * Messages with equal words and punctuation and masked values have equal signatures under one seed.
 *
 * @param tokens address for the tokens, whose positions are offsets from `start`; 0 computes the signature instead
 * @returns the number of tokens
 */
export function scan(start: usize, limit: usize, seedLo: u32, seedHi: u32, tokens: usize): u32 {
  const end = limit - start > MAX_SCAN_BYTES ? wholeCharacters(start + MAX_SCAN_BYTES) : limit
  let signature = <u64>seedLo | (<u64>seedHi << 32)
  let space: u32 = 0
  let count: u32 = 0
  let words: u32 = 0
  let isTruncated = end < limit
  let i = start
  while (i < end) {
    let c: u32 = load<u8>(i)
    let cls = classByte(c)
    if (cls == SPACE) {
      if (c == 10 && words > 0) {
        isTruncated = hasText(i, end)
        break
      }
      space = SPACE_MARK
      i++
      continue
    }
    if (count >= MAX_TOKENS) {
      isTruncated = true
      break
    }
    const from = i
    let kind: u32 = 0
    let hash = VALUE_MARK
    if (cls < WORD) {
      const mayBe = load<u8>(MAY_BEGIN + c) == 1 && (c != 58 || byteAt(i + 1, end) == 58)
      const stop: isize = mayBe ? valueAtPunct(i, end, i == start) : 0
      if (stop == 0) {
        signature = step(signature, <u64>(c | space) << 32)
        space = 0
        i++
        continue
      }
      kind = VALUE
      i = <usize>stop
      if (stop < 0) {
        // The byte is the sign of a number.
        readChain(from + 1, end, tokens != 0)
        i = chainEnd
        if (chainCount == 1) kind = SIGNED
      }
    } else {
      const groups = groupsAt(from)
      let length = wordBytes(groups, end - from)
      const part = (<u32>1 << length) - 1
      const numbers = digitBits(groups)
      const opens = (cls & DIGIT_BIT) != 0
      const stop = opens ? numberEnd(from, end, numbers) : 0
      if (stop > 0) {
        i = stop
        kind = VALUE
        // `9:28:19`, `09:28:19`
        const colon = load<u8>(from + 1) == 58 ? from + 1 : from + 2
        if (colon < i && load<u8>(colon) == 58) kind = TIME
        words++
      } else {
        let digits = numbers & part
        let notHex: bool
        let high: bool
        const isShort = length < VECTOR
        if (isShort) {
          notHex = (part & ~(numbers | hexLetterBits(groups))) != 0
          high = (part & highBits(from)) != 0
          i += length
        } else {
          i = wordEnd(from, end)
          length = <u32>(i - from)
          digits = wordDigits
          notHex = wordNotHex
          high = wordHigh
        }
        c = i < end ? <u32>load<u8>(i) : 0
        words++
        const plain = digits == 0 || !high
        const seen: u32 = (digits != 0 ? 1 : 0) | (length > 4 ? 2 : 0)
        if (plain && (c == 32 || standsAlone(i, end, seen))) {
          const value =
            opens ||
            (isShort ? popcnt<u32>(digits) : digits) > 1 ||
            (!notHex && length >= 8) ||
            length > <u32>MAX_WORD_BYTES
          if (value) hash = VALUE_MARK ^ VALUE
          else hash = isShort ? hashOfShort(from, length) : hashOfWord(from, length)
          if (tokens != 0) {
            const text = digits == 0 ? WORD_TOKEN : SOFT
            const listed = value ? hash : textHash(from, i)
            push(tokens, count, value ? VALUE : text, from - start, i - start, listed)
          }
          count++
          signature = step(signature, <u64>hash | (<u64>space << 32))
          space = 0
          if (c == 32) {
            space = SPACE_MARK
            i++
          }
          continue
        } else {
          readChain(from, end, tokens != 0)
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
        const joiner = space | (to < i ? <u32>load<u8>(to) : 0)
        signature = step(signature, <u64>hash | (<u64>joiner << 32))
        space = 0
      }
      continue
    }
    if (kind >= VALUE) hash = VALUE_MARK ^ kind
    if (tokens != 0) push(tokens, count, kind, from - start, i - start, hash)
    count++
    signature = step(signature, <u64>hash | (<u64>space << 32))
    space = 0
  }
  if (isTruncated) {
    signature ^= TAIL_MARK
    if (tokens != 0) push(tokens, count, VALUE, i - start, limit - start, VALUE_MARK)
    count++
  }
  signature = finish(signature ^ (<u64>count << 32))
  signatureLo = <u32>signature == 0 ? 1 : <u32>signature
  signatureHi = <u32>(signature >> 32)
  return count
}

/**
 * Returns the end of a plain, dotted or colon-joined number (`7`, `10.0.0.1:80`, `15:42:50`), 0 when it is part of
 * a longer chain.
 * @param digits a bit for each digit of the 16 bytes at `from`; the first is set
 */
@inline
function numberEnd(from: usize, end: usize, digits: u32): usize {
  const bytes = v128.load(from)
  const points: u32 = i8x16.bitmask(
    v128.or(i8x16.eq(bytes, i8x16.splat(46)), i8x16.eq(bytes, i8x16.splat(58))),
  )
  const here = end - from < VECTOR ? digits & ((<u32>1 << <u32>(end - from)) - 1) : digits
  // A point belongs to the number when a digit follows it.
  const length = ctz<u32>(~(here | (points & (here >> 1))))
  const i = from + length
  const stop = length < VECTOR - 1 ? i : longNumberEnd(i, end)
  return standsAlone(stop, end, 1) ? stop : 0
}

function longNumberEnd(from: usize, end: usize): usize {
  let i = from
  for (; i < end; i++) {
    const c: u32 = load<u8>(i)
    if (isDigit(c)) continue
    if ((c != 46 && c != 58) || i + 1 >= end || !isDigit(load<u8>(i + 1))) break
  }
  return i
}

/**
 * Whether the byte at `i` ends a word or number, so that it need not be read as a chain.
 * @param seen bit 0: it has a digit, bit 1: it has 5 bytes or more
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
 * Reads a value that begins with punctuation: a path (`/var`, `./a`, `\\host`), `<*>`, `::1`, or the sign of a
 * number.
 * @returns its end, -1 for a sign, 0 when it is punctuation
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

/** Recognises `<*>`, and `<` as the sign of `<1 sec`. In `<0.12.0>` it is a bracket. */
function valueAtAngle(i: usize, end: usize, first: bool): isize {
  const next = byteAt(i + 1, end)
  if (next == 42) return i + 3 <= end && load<u8>(i + 2) == 62 ? <isize>(i + 3) : 0
  if (!isDigit(next) || !(first || load<u8>(i - 1) == 32)) return 0
  let at = i + 2
  while (at < end && load<u8>(at) > 32 && load<u8>(at) != 62) at++
  return byteAt(at, end) == 62 ? 0 : -1
}

/** Recognises `/var`, `/.cache`, `\\\\host`, `./a`, `../a`. */
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

/** Whether `HTTP/` follows the root as a request's target: `GET / HTTP/1.1`. */
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

/** Returns `end`, or the beginning of the UTF-8 character that it splits. */
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
