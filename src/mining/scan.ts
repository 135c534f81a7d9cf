import {
  CLASS,
  colonHexEnd,
  DIGIT_BIT,
  HIGH_BIT,
  isHostName,
  JOINER,
  NOT_HEX_BIT,
  pathEnd,
  scriptChange,
  shortIpEnd,
  SPACE,
  WORD,
} from './bytes.js'

/** What a token is. Words and soft words are text, the others are values. */
export const TOKEN = {
  word: 1,
  /** has exactly one digit (`ssh2`, `L3`): reads as text, but does not tell templates apart */
  soft: 2,
  value: 3,
  /** `15:42:50` and what else a colon joins to a plain number */
  time: 4,
  /** `2005-06-03`, `03/Jun/2005` */
  date: 5,
  /** a number with a sign */
  signed: 6,
} as const

/** Numbers of a token in a token array: kind, start, end, hash. Entry 0 of the array is the count. */
export const TOKEN_STRIDE = 4

/** A message is scanned this far; the rest is one value. */
export const MAX_SCAN_BYTES = 8192
/** Tokens of a message; the rest is one value. */
export const MAX_TOKENS = 256
/** A longer word is a value: no vocabulary has it. */
const MAX_WORD_BYTES = 96

const FNV_SEED = 0x811c9dc5 | 0
const FNV_PRIME = 0x01000193
const MIX_LO = 0x9e3779b1 | 0
const MIX_HI = 0x85ebca77 | 0
const SPACE_MARK = 0x100
const VALUE_MARK = 0x5bd1e995
const TAIL_MARK = 0x2545f491

const NO_TOKENS = new Int32Array(0)

/** A token array for `scanTokens`. */
export const tokenArray = (): Int32Array => new Int32Array((MAX_TOKENS + 2) * TOKEN_STRIDE)

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
 * Equal shapes belong to the same template. Never both 0. One pass, no allocation; hot path
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

/** The same scan, which also lists the tokens; see `TOKEN_STRIDE`. */
export function scanTokens(bytes: Uint8Array, tokens: Int32Array): void {
  scan(bytes, 0, bytes.length, new Int32Array(2), tokens)
}

function avalanche(hash: number): number {
  let h = Math.imul(hash ^ (hash >>> 16), 0x7feb352d)
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b)
  return h ^ (h >>> 16)
}

function hashBytes(bytes: Uint8Array, from: number, to: number): number {
  let h = FNV_SEED
  for (let i = from; i < to; i++) h = Math.imul(h ^ (bytes[i] ?? 0), FNV_PRIME)
  return h
}

const isDigit = (c: number): boolean => c >= 48 && c <= 57

/**
 * A value that begins with punctuation: a path (`/var`, `./a`, `\\host`), `<*>`, `::1`, or the sign
 * of a number.
 * @returns the index behind it, -1 for a sign, 0 when it is punctuation
 */
function valueAtPunct(bytes: Uint8Array, i: number, end: number): number {
  const c = bytes[i]
  const next = i + 1 < end ? (bytes[i + 1] ?? 0) : 0
  if (c === 45 || c === 43) return isDigit(next) ? -1 : 0
  if (c === 58) {
    const alone = i === 0 || (CLASS[bytes[i - 1] ?? 0] ?? 0) < WORD
    return next === 58 && alone ? shortIpEnd(bytes, i, end) : 0
  }
  if (c === 60) {
    // `<*>`, `<1 sec`
    if (next === 42) return bytes[i + 2] === 62 && i + 3 <= end ? i + 3 : 0
    return isDigit(next) && (i === 0 || bytes[i - 1] === 32) ? -1 : 0
  }
  if (c === 47) {
    const starts = (CLASS[next] ?? 0) >= WORD || next === 46 || next === 45
    return starts ? pathEnd(bytes, i + 1, end) : 0
  }
  if (c === 92)
    return next === 92 && (CLASS[bytes[i + 2] ?? 0] ?? 0) >= WORD ? pathEnd(bytes, i, end) : 0
  // ./a and ../a
  const slash = next === 46 ? i + 2 : i + 1
  return bytes[slash] === 47 && slash + 1 < end && (CLASS[bytes[slash + 1] ?? 0] ?? 0) >= WORD
    ? pathEnd(bytes, slash, end)
    : 0
}

/** Whether punctuation may begin a value. */
const MAY_BEGIN_VALUE = Uint8Array.from({ length: 128 }, (_, c) =>
  '-+</\\.:'.includes(String.fromCharCode(c)) ? 1 : 0,
)

/** What the parts of a joined word said together; `joined` has a bit for each kind of joiner. */
interface Chain {
  readonly from: number
  readonly to: number
  readonly parts: number
  readonly valueParts: number
  readonly plainParts: number
  readonly mixedParts: number
  readonly joined: number
  readonly slashes: number
  /** the first part is a value */
  readonly opens: boolean
}

const DASH = 1
const DOT = 2
const SLASH = 4
const AT = 8
const BACKSLASH = 16
const joinBit = (c: number): number => {
  if (c === 46) return DOT
  if (c === 45) return DASH
  if (c === 47) return SLASH
  if (c === 64) return AT
  return c === 92 ? BACKSLASH : 0
}

/** Decides on a joined word as a whole: its token kind, or 0 when its parts stand for themselves. */
function judgeChain(bytes: Uint8Array, chain: Chain): number {
  const { joined, parts, valueParts, plainParts, slashes } = chain
  if (chain.to - chain.from > MAX_WORD_BYTES) return TOKEN.value
  if ((joined & DOT) !== 0 && ((joined & AT) !== 0 || isHostName(bytes, chain.from, chain.to))) {
    return TOKEN.value
  }
  if (chain.mixedParts === 1 && parts === 3 && plainParts === 2 && (joined === SLASH || joined === DASH)) {
    return TOKEN.date
  }
  if (slashes >= 2 && chain.mixedParts > 0) return TOKEN.value
  if (valueParts === 0) return 0
  if (chain.mixedParts === 0) {
    // 12/40 is a share of two numbers, 12/11/2025 and 2025-11-12 are dates
    if (joined === SLASH && parts === 2 && plainParts === 2) return 0
    const date = parts === 3 && plainParts === 3 && (joined === SLASH || joined === DASH)
    return date ? TOKEN.date : TOKEN.value
  }
  // p1234.example.info
  if (chain.opens && joined === DOT && chain.mixedParts >= 2) return TOKEN.value
  return (joined & DASH) !== 0 ? TOKEN.value : 0
}

/**
 * The scanner: one pass that masks and hashes. A word is a run of letters, digits and `_`, joined
 * words are read as a chain whose masking is decided at its end, where the hash is rolled back.
 */
// oxlint-disable-next-line max-params, complexity, max-lines-per-function -- hot path: one loop over local numbers (bench/micro/mining.bench.ts)
function scan(
  bytes: Uint8Array,
  start: number,
  limit: number,
  out: Int32Array,
  tokens: Int32Array,
): void {
  const record = tokens.length > 0
  const end = limit - start > MAX_SCAN_BYTES ? wholeCharacters(bytes, start + MAX_SCAN_BYTES) : limit
  let lo = out[0] ?? 0
  let hi = out[1] ?? 0
  let space = 0
  let words = 0
  let count = 0
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
    let chainStart = from
    let kind = 0
    let hash = VALUE_MARK
    if (cls < WORD) {
      const stop = c < 128 && MAY_BEGIN_VALUE[c] === 1 ? valueAtPunct(bytes, i, end) : 0
      if (stop > 0) {
        kind = TOKEN.value
        i = stop
      } else if (stop < 0) {
        i++
        c = bytes[i] ?? 0
        cls = CLASS[c] ?? 0
      } else {
        lo = Math.imul(lo ^ (c | space), MIX_LO)
        lo ^= lo >>> 15
        hi = Math.imul(hi ^ (c | space), MIX_HI)
        hi ^= hi >>> 13
        space = 0
        i++
        continue
      }
    }
    if (kind === 0) {
      const lo0 = lo
      const hi0 = hi
      const count0 = count
      const chainFrom = i
      chainStart = i
      let h = FNV_SEED
      let total = 0
      let parts = 0
      let valueParts = 0
      let plainParts = 0
      let mixedParts = 0
      let joined = 0
      let slashes = 0
      let opens = false
      let segment = i
      let segmentHash = h
      let valueEnd = 0
      for (;;) {
        const partFrom = i
        const first = cls & DIGIT_BIT
        let digits = 0
        let bits = 0
        do {
          h = Math.imul(h ^ c, FNV_PRIME)
          digits += cls & DIGIT_BIT
          bits |= cls
          i++
          c = i < end ? (bytes[i] ?? 0) : 0
          cls = CLASS[c] ?? 0
        } while (cls >= WORD)
        if ((bits & HIGH_BIT) !== 0 && digits > 0) {
          const change = scriptChange(bytes, partFrom, i)
          if (change < i) {
            h = hashBytes(bytes, partFrom, change)
            digits = first === 0 ? 0 : change - partFrom
            i = change
            c = 0
            cls = SPACE
          }
        }
        parts++
        total += digits
        const length = i - partFrom
        if (digits === length) plainParts++
        if (digits === 0 && ((bits & NOT_HEX_BIT) !== 0 || length < 2 || parts === 1)) mixedParts++
        if (first !== 0 || digits >= 2 || (length >= 8 && (bits & NOT_HEX_BIT) === 0)) {
          valueParts++
          opens ||= parts === 1
          if (partFrom > segment) {
            if (record) {
              push(tokens, count, TOKEN.word, segment, partFrom - 1, segmentHash)
            }
            count++
            lo = Math.imul(lo ^ segmentHash, MIX_LO)
            lo ^= lo >>> 15
            hi = Math.imul(hi ^ segmentHash ^ space, MIX_HI)
            hi ^= hi >>> 13
          }
          if (partFrom === valueEnd + 1 && valueEnd > 0 && bytes[valueEnd] === 46) {
            // 1.2 inside a chain of words is one value
            if (record) tokens[count * TOKEN_STRIDE + 2] = i
          } else {
            if (record) push(tokens, count, TOKEN.value, partFrom, i, 0)
            count++
          }
          valueEnd = i
          lo = Math.imul(lo ^ VALUE_MARK, MIX_LO)
          lo ^= lo >>> 15
          hi = Math.imul(hi ^ VALUE_MARK ^ space, MIX_HI)
          hi ^= hi >>> 13
          segment = i + 1
          h = FNV_SEED
        }
        if (cls !== JOINER || i + 1 >= end) break
        const next = bytes[i + 1] ?? 0
        if ((CLASS[next] ?? 0) < WORD || count >= MAX_TOKENS) break
        joined |= joinBit(c)
        if (c === 47 || c === 92) slashes++
        segmentHash = h
        if (h !== FNV_SEED) h = Math.imul(h ^ c, FNV_PRIME)
        lo = Math.imul(lo ^ c, MIX_LO)
        i++
        c = next
        cls = CLASS[c] ?? 0
      }
      let named = false
      if (c === 47 && bytes[i + 1] === 46 && i + 2 < end && parts > 1) {
        // com.app/.Activity
        kind = TOKEN.value
        i = pathEnd(bytes, i, end)
      } else if (c === 47 && parts === 1 && i - chainFrom === 1 && bytes[chainFrom] === 126) {
        kind = TOKEN.value
        i = pathEnd(bytes, i, end)
      } else if (c === 58 && i + 2 < end) {
        const slash = bytes[i + 1] ?? 0
        if (slash === 47 && bytes[i + 2] === 47) {
          kind = TOKEN.value
          i = pathEnd(bytes, i, end)
        } else if (slash === 92 && i - chainFrom === 1) {
          kind = TOKEN.value
          i = pathEnd(bytes, i, end)
        } else if (slash === 58 && total > 0) {
          // a name space: Brcm43xx::start
          named = ((CLASS[bytes[i + 2] ?? 0] ?? 0) & NOT_HEX_BIT) !== 0
        } else if (parts === 1 && i - chainFrom <= 4) {
          const stop = colonHexEnd(bytes, chainFrom, end)
          if (stop > i) {
            kind = TOKEN.value
            i = stop
          }
        }
      }
      const key =
        (named || (c === 61 && total > 0 && bytes[i + 1] !== 61)) && !isDigit(bytes[chainFrom] ?? 0)
      if (kind === 0) {
        if (key) {
          kind = TOKEN.word
          hash = hashBytes(bytes, chainFrom, i)
        } else if (parts === 1) {
          if (valueParts === 1) {
            kind = TOKEN.value
          } else if (i - chainFrom > MAX_WORD_BYTES) {
            kind = TOKEN.value
          } else {
            kind = total > 0 ? TOKEN.soft : TOKEN.word
            hash = h
          }
        } else {
          kind = judgeChain(bytes, {
            from: chainFrom,
            to: i,
            parts,
            valueParts,
            plainParts,
            mixedParts,
            joined,
            slashes,
            opens,
          })
          if (kind === 0 && valueParts === 0) {
            kind = total > 0 ? TOKEN.soft : TOKEN.word
            hash = h
          }
        }
      }
      if (kind === 0) {
        // the parts stand for themselves; what follows the last value is a word
        if (i > segment) {
          if (record) push(tokens, count, TOKEN.word, segment, i, h)
          count++
          lo = Math.imul(lo ^ h, MIX_LO)
          lo ^= lo >>> 15
          hi = Math.imul(hi ^ h, MIX_HI)
          hi ^= hi >>> 13
        }
        words++
        space = 0
        continue
      }
      lo = lo0
      hi = hi0
      count = count0
      if (kind >= TOKEN.value) {
        // host:port, 15:42:50, path:line
        while (bytes[i] === 58 && i + 1 < end && isDigit(bytes[i + 1] ?? 0)) {
          if (plainParts === 1 && parts === 1) kind = TOKEN.time
          i++
          while (
            i < end &&
            ((CLASS[bytes[i] ?? 0] ?? 0) >= WORD || (bytes[i] === 46 && isDigit(bytes[i + 1] ?? 0)))
          )
            i++
        }
      }
    }
    if (kind === TOKEN.value && chainStart > from) kind = TOKEN.signed
    if (kind < TOKEN.value) words++
    else hash = VALUE_MARK + kind
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
  if (record) tokens[0] = count
  lo = avalanche(lo)
  out[0] = lo === 0 ? 1 : lo
  out[1] = avalanche(hi ^ count)
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
  const at = (index + 1) * TOKEN_STRIDE
  tokens[at] = kind
  tokens[at + 1] = from
  tokens[at + 2] = to
  tokens[at + 3] = hash
}
