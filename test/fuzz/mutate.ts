import type { Random } from '../../bench/data/random.js'

/** Pieces that have broken parsers before; every target adds its own. */
const TOKENS = [
  '{',
  '}',
  '[',
  ']',
  '"',
  ',',
  ':',
  '\\',
  '\n',
  '\r\n',
  '\0',
  '\t',
  ' ',
  '=',
  ';',
  '%',
  '-',
  '+',
  '.',
  '<',
  '>',
  '""',
  '{}',
  '[]',
  'null',
  'true',
  'false',
  '\\u0000',
  '\\ud800',
  '\\udc00',
  '\\ud83d\\ude00',
  '\\u',
  '\\x',
  '"__proto__"',
  '"constructor"',
  '"prototype"',
  '"toString"',
  '"hasOwnProperty"',
  '"length"',
  '0',
  '-0',
  '1e309',
  '-1e309',
  '1e-400',
  '9007199254740993',
  '18446744073709551616',
  '0x10',
  '1_000',
  'NaN',
  'Infinity',
  '00',
  '1e5',
  '0000-01-01T00:00:00Z',
  '9999-12-31T23:59:60Z',
  '2026-02-30',
  '1969-12-31T23:59:59Z',
  '"timestamp"',
  '"source"',
  '"message"',
  '"severity"',
  '"tags"',
  '"host"',
  '"dedup_key"',
  '"trace_id"',
  '\ufeff',
  '\xef\xbb\xbf',
  '\xff',
  '\xc0\x80',
  '\xed\xa0\x80',
  '\xf4\x90\x80\x80',
  '\xe2\x80\xa8',
  '\xc2\x85',
  '%s%n',
  '${}',
  "' OR 1=1 --",
  '<script>',
  '../',
  '/dev/null',
  '\x1b[31m',
].map((text) => Buffer.from(text, 'latin1'))

const MAX_BYTES = 20_000

type Mutation = (input: Buffer, random: Random, others: readonly Buffer[]) => Buffer

const place = (input: Buffer, random: Random): number => random.below(input.length + 1)

function range(input: Buffer, random: Random): readonly [number, number] {
  const from = place(input, random)
  // short ones mostly
  const length = Math.floor(random.share() ** 3 * (input.length - from + 1))
  return [from, from + length]
}

const splice = (input: Buffer, from: number, to: number, by: Uint8Array): Buffer =>
  Buffer.concat([input.subarray(0, from), by, input.subarray(to)])

const pick = <T>(list: readonly T[], random: Random): T => {
  const item = list[random.below(list.length)]
  if (item === undefined) throw new Error('bug: nothing to pick from')
  return item
}

const mutations = (tokens: readonly Buffer[]): readonly Mutation[] => [
  // flips a bit
  (input, random) => {
    if (input.length === 0) return input
    const copy = Buffer.from(input)
    const at = random.below(copy.length)
    copy[at] = (copy[at] ?? 0) ^ (1 << random.below(8))
    return copy
  },
  // puts any byte
  (input, random) => {
    if (input.length === 0) return input
    const copy = Buffer.from(input)
    copy[random.below(copy.length)] = random.below(256)
    return copy
  },
  // takes a range out
  (input, random) => splice(input, ...range(input, random), Buffer.alloc(0)),
  // repeats a range, mostly a few times, sometimes often
  (input, random) => {
    const [from, to] = range(input, random)
    const times = 1 + Math.floor(random.share() ** 4 * 400)
    const piece = input.subarray(from, to)
    const fit = Math.max(1, Math.min(times, Math.floor(MAX_BYTES / Math.max(1, piece.length))))
    return splice(input, from, from, Buffer.concat(Array.from({ length: fit }, () => piece)))
  },
  // inserts a token
  (input, random) => {
    const at = place(input, random)
    return splice(input, at, at, pick(tokens, random))
  },
  // puts a token in the place of a range
  (input, random) => splice(input, ...range(input, random), pick(tokens, random)),
  // takes a range of another input over
  (input, random, others) => {
    const other = pick(others, random)
    return splice(input, ...range(input, random), other.subarray(...range(other, random)))
  },
  // moves a range
  (input, random) => {
    const [from, to] = range(input, random)
    const piece = Buffer.from(input.subarray(from, to))
    const rest = splice(input, from, to, Buffer.alloc(0))
    const at = place(rest, random)
    return splice(rest, at, at, piece)
  },
  // cuts the end off
  (input, random) => input.subarray(0, place(input, random)),
]

/** @returns makes another input out of one; `others` is never empty */
export function createMutator(
  tokens: readonly string[],
): (input: Buffer, others: readonly Buffer[], random: Random) => Buffer {
  const all = mutations([...TOKENS, ...tokens.map((text) => Buffer.from(text, 'latin1'))])
  return (input, others, random) => {
    let changed = input
    const times = 1 + Math.floor(random.share() ** 2 * 6)
    for (let i = 0; i < times; i++) changed = pick(all, random)(changed, random, others)
    return changed.subarray(0, MAX_BYTES)
  }
}
