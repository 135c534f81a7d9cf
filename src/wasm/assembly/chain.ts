import {
  classAt,
  classByte,
  colonHexEnd,
  DIGIT_BIT,
  isDigit,
  isHostName,
  JOINER,
  NOT_HEX_BIT,
  pathEnd,
  scriptChange,
  WORD,
  wordDigits,
  wordEnd,
  wordHigh,
  wordNotHex,
} from './bytes'
import { hashOfWord } from './hash'
import {
  DATE,
  FNV_PRIME,
  FNV_SEED,
  MAX_WORD_BYTES,
  SOFT,
  TIME,
  TOKEN_BYTES,
  VALUE,
  WORD_TOKEN,
} from './token'

/** A chain of more parts is one value. */
const MAX_PARTS: u32 = 24

const DASH: u32 = 1
const DOT: u32 = 2
const SLASH: u32 = 4
const AT: u32 = 8

/**
 * A chain is words and numbers joined by `.`, `-`, `/`, `@`, `#` or `\` (`10.0.0.1:80`, `node-7`,
 * `java.io.IOException`, `core.2275`). `readChain` decides whether it is one token or several words and values, and
 * writes the tokens here; positions are addresses.
 */
export const CHAIN_TOKENS: usize = memory.data((24 + 2) * 16)
export let chainCount: u32 = 0
/** Where the chain ends. */
export let chainEnd: usize = 0

let start: usize = 0
let limit: usize = 0
let parts: u32 = 0
let valueParts: u32 = 0
/** Number of parts of digits only. */
let plainParts: u32 = 0
/** Number of parts that have no digits and are not hexadecimal. */
let mixedParts: u32 = 0
let allDigits: u32 = 0
let joined: u32 = 0
let slashes: u32 = 0
/** Whether the first part is a value. */
let opens = false

@inline
function joinBit(c: u32): u32 {
  if (c == 46) return DOT
  if (c == 45) return DASH
  if (c == 47) return SLASH
  return c == 64 ? AT : 16
}

/** Hashes a word with FNV-1a, as `hashText` of `templates/masked-message.ts` does. */
export function textHash(from: usize, to: usize): u32 {
  let h = FNV_SEED
  for (let i = from; i < to; i++) h = (h ^ load<u8>(i)) * FNV_PRIME
  return h
}

/**
 * Reads the chain whose first byte, of a word, is at `from`.
 * @param listed whether its words are hashed for a list of tokens
 */
export function readChain(from: usize, end: usize, listed: bool): void {
  start = from
  limit = end
  parts = 0
  valueParts = 0
  plainParts = 0
  mixedParts = 0
  allDigits = 0
  joined = 0
  slashes = 0
  opens = false
  chainCount = 0
  readParts()
  let kind = valueByContext()
  if (kind == 0) kind = judge()
  if (kind == 0) {
    hashWords(listed)
    return
  }
  if (kind >= VALUE) kind = takeColons(kind)
  chainCount = 0
  push(kind, from, chainEnd)
  if (kind < VALUE) hashWords(listed)
}

/** Hashes the tokens that are not values. */
function hashWords(listed: bool): void {
  const end = CHAIN_TOKENS + chainCount * TOKEN_BYTES
  for (let at = CHAIN_TOKENS; at < end; at += TOKEN_BYTES) {
    if (load<u32>(at) >= VALUE) continue
    const from = <usize>load<u32>(at, 4)
    const to = <usize>load<u32>(at, 8)
    store<u32>(at, listed ? textHash(from, to) : hashOfWord(from, <u32>(to - from)), 12)
  }
}

function readParts(): void {
  const end = limit
  let i = start
  let segment = i
  for (;;) {
    const from = i
    const first = classAt(i) & DIGIT_BIT
    i = wordEnd(from, end)
    let digits = wordDigits
    let goesOn = true
    if (wordHigh && digits > 0) {
      const change = scriptChange(from, i)
      if (change < i) {
        digits = first == 0 ? 0 : <u32>(change - from)
        i = change
        goesOn = false
      }
    }
    const length = <u32>(i - from)
    countPart(digits, length, wordNotHex)
    if (first != 0 || digits >= 2 || (length >= 8 && !wordNotHex)) {
      if (parts == 1) opens = true
      if (from > segment) push(WORD_TOKEN, segment, from - 1)
      pushValue(from, i)
      segment = i + 1
    }
    if (!goesOn || i + 1 >= end || parts >= MAX_PARTS) break
    const c: u32 = load<u8>(i)
    if (classByte(c) != JOINER || classAt(i + 1) < WORD) break
    joined |= joinBit(c)
    if (c == 47 || c == 92) slashes++
    i++
  }
  if (i > segment) push(WORD_TOKEN, segment, i)
  chainEnd = i
}

function countPart(digits: u32, length: u32, notHex: bool): void {
  parts++
  allDigits += digits
  if (digits == length) plainParts++
  if (digits == 0 && (notHex || length < 2 || parts == 1)) mixedParts++
}

function pushValue(from: usize, to: usize): void {
  valueParts++
  if (chainCount > 0) {
    const last = CHAIN_TOKENS + (chainCount - 1) * TOKEN_BYTES
    // 1.2 among words is one value.
    if (load<u32>(last) == VALUE && <usize>load<u32>(last, 8) == from - 1 && load<u8>(from - 1) == 46) {
      store<u32>(last, <u32>to, 8)
      return
    }
  }
  push(VALUE, from, to)
}

function push(kind: u32, from: usize, to: usize): void {
  const at = CHAIN_TOKENS + chainCount * TOKEN_BYTES
  store<u32>(at, kind)
  store<u32>(at, <u32>from, 4)
  store<u32>(at, <u32>to, 8)
  store<u32>(at, 0, 12)
  chainCount++
}

/** Finds chains that are a value (URL, path, address) or a name (`x1=`, `a12::b`) because of the text around them. */
function valueByContext(): u32 {
  const c = byteAt(chainEnd)
  if (c == 47) return opensPath() ? takePath() : 0
  const named = allDigits > 0 && !isDigit(byteAt(start))
  if (c == 61) return named && byteAt(chainEnd + 1) != 61 ? WORD_TOKEN : 0
  return c == 58 ? valueByColon(named) : 0
}

/** Returns the byte at an address, 0 from the end of the message on. */
@inline
function byteAt(i: usize): u32 {
  return i < limit ? <u32>load<u8>(i) : 0
}

/** Recognises `com.app/.Activity` and `~/file`. */
function opensPath(): bool {
  if (byteAt(chainEnd + 1) == 46 && parts > 1) return true
  return chainEnd - start == 1 && byteAt(start) == 126
}

function valueByColon(named: bool): u32 {
  const next = byteAt(chainEnd + 1)
  const behind = byteAt(chainEnd + 2)
  if (next == 47 && behind == 47) return takePath()
  if (next == 92 && chainEnd - start == 1) return takePath()
  if (next == 58 && named && (classByte(behind) & NOT_HEX_BIT) != 0) return WORD_TOKEN
  if (parts != 1 || chainEnd - start > 4) return 0
  const stop = colonHexEnd(start, limit)
  if (stop <= chainEnd) return 0
  chainEnd = stop
  return VALUE
}

function takePath(): u32 {
  chainEnd = pathEnd(chainEnd, limit)
  return VALUE
}

/** Returns the kind of token if the whole chain is one, 0 when its parts are separate tokens. */
function judge(): u32 {
  if (chainEnd - start > MAX_WORD_BYTES || parts >= MAX_PARTS) return VALUE
  if (parts > 1) {
    const whole = judgeJoined()
    if (whole != 0) return whole
  } else if (valueParts == 1) return VALUE
  if (valueParts == 0) return allDigits > 0 ? SOFT : WORD_TOKEN
  if (mixedParts > 0) return (joined & DASH) != 0 ? VALUE : 0
  return isShare() ? 0 : VALUE
}

/** Recognises `12/40`. */
function isShare(): bool {
  return joined == SLASH && parts == 2 && plainParts == 2
}

function judgeJoined(): u32 {
  if (isAddress() || isHostWithPort()) return VALUE
  if (isDate()) return DATE
  return slashes >= 2 && mixedParts > 0 ? VALUE : 0
}

/** Recognises `db-main:5432` and `kafka.prod:9092`: lower case and digits joined by dots or dashes, and a port. */
function isHostWithPort(): bool {
  if ((joined & (DOT | DASH)) == 0 || (joined & ~(DOT | DASH)) != 0 || byteAt(chainEnd) != 58) return false
  for (let i = start; i < chainEnd; i++) {
    const c = byteAt(i)
    if (c >= 65 && c <= 90) return false
  }
  let i = chainEnd + 1
  while (isDigit(byteAt(i))) i++
  const digits = i - chainEnd - 1
  return digits >= 2 && digits <= 5 && classByte(byteAt(i)) < WORD && (byteAt(i) != 58 || !isDigit(byteAt(i + 1)))
}

/** Recognises `a@b`, `a@b.c`, `www.example.com`, `p1234.example.info`. */
function isAddress(): bool {
  if ((joined & AT) != 0) return true
  if ((joined & DOT) == 0) return false
  if (isHostName(start, chainEnd)) return true
  return opens && joined == DOT && mixedParts >= 2
}

/** Recognises `2025-11-12`, `12/11/2025`, `12/Nov/2025`. */
function isDate(): bool {
  if (parts != 3 || (joined != SLASH && joined != DASH)) return false
  return plainParts == 3 || (plainParts == 2 && mixedParts == 1)
}

/** Appends parts joined to the chain by colons: `host:port`, `15:42:50`, `path:line`. */
function takeColons(kind: u32): u32 {
  const number = plainParts == 1 && parts == 1
  let i = chainEnd
  let found = kind
  while (i + 1 < limit && load<u8>(i) == 58 && isDigit(load<u8>(i + 1))) {
    if (number) found = TIME
    i++
    while (i < limit && isNumberByte(i)) i++
  }
  chainEnd = i
  return found
}

function isNumberByte(i: usize): bool {
  const c = byteAt(i)
  return classByte(c) >= WORD || (c == 46 && isDigit(byteAt(i + 1)))
}
