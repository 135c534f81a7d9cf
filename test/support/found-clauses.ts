/**
 * Events with odd texts and values, and clauses made from them, so that most clauses find one event and not the others. A clause
 * that is written without looking at the events finds all or none of such texts.
 */
import type { Comparison, Query, TextTest, ValueTest } from '../../src/query/ast.js'
import { isNumber } from '../../src/query/fields.js'
import { END_MS, FROM_MS, type MadeEvent } from './event-data.js'
import { leavesOf, type ModelEvent } from './query-model.js'

const PIECES = [
  ...'timeout Time OUT pay 10 0 1.5 Z9 user=bob a.b.c v2 0x1f'.split(' '),
  ...'é É ß naïve Я я 日本 エラー ー ไทย ٣ ½ x̀ 😀 →'.split(' '),
  ...Array.from('_-./\\"\'()[]{}*+?^$|=:,;@#%&!~<>` \t\n'),
  '  ',
]
const NAMES = [
  'region',
  'user',
  'user.id',
  'a',
  'a.b',
  'ключ',
  'q"t',
  'b\\s',
  'sp ace',
  'dot.',
  '*',
]

/** @param random gives numbers in [0, 1) */
export function createClauses(random: () => number) {
  const below = (most: number): number => Math.floor(random() * most)
  const pick = <T>(values: readonly T[]): T => values[below(values.length)] as T // there is one
  const text = (most: number): string =>
    Array.from({ length: 1 + below(most) }, () => pick(PIECES)).join('')

  const VALUES: readonly (() => unknown)[] = [
    () => below(1000),
    () => random() * 10 ** pick([-7, 0, 1, 21]),
    () => -below(50) / 8,
    () => String(below(100)),
    () => (random() * 100).toFixed(below(4)),
    () => `${below(9)}e${below(3)}`,
    () => pick([2 ** 53 + 2, '9007199254740993', '1e400', '-0', '007', '', true, null]),
    () => text(3),
    () => [text(2), below(9)],
    () => ({ a: text(2), b: [{ c: below(5) }] }),
  ]
  const makeEvent = (): MadeEvent => {
    const message = text(8)
    const chars = Array.from(message)
    const cuts = [below(chars.length + 1), below(chars.length + 1)].toSorted((a, b) => a - b)
    const exception = below(10) === 0 ? `Error: ${text(5)}` : ''
    const names = Array.from({ length: below(5) }, () => pick(NAMES))
    const tags = Object.fromEntries(names.map((name) => [name, pick(VALUES)()]))
    return {
      tsMs: FROM_MS + below(END_MS - FROM_MS),
      source: pick(['web', 'cart', text(2)]),
      type: 'log',
      severity: 'INFO',
      priority: 'P4',
      environment: '',
      host: below(2) === 0 ? '' : text(3),
      message,
      traceId: below(3) === 0 ? text(3) : '',
      spanId: '',
      templateId: '00000000000000aa',
      tags: exception === '' ? tags : { ...tags, err: { stack: exception } },
      exceptions: exception === '' ? [] : [exception],
      count: 1,
      literals:
        below(2) === 0 ? [''] : [chars.slice(0, cuts[0]).join(''), chars.slice(cuts[1]).join('')],
    }
  }

  /** A part of a text, half of them short. */
  const partOf = (whole: string): string => {
    const chars = Array.from(whole)
    const from = below(chars.length)
    return chars.slice(from, from + 1 + below(pick([4, chars.length]))).join('')
  }
  const inOtherCase = (own: string): string =>
    Array.from(own, (char) => {
      const other = pick([char, char, char.toUpperCase(), char.toLowerCase()])
      return other.length === char.length ? other : char
    }).join('')
  const literal = (own: string): string =>
    own.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`).replaceAll('\n', String.raw`\n`)

  const pattern = (whole: string, depth = 2): string => {
    const atoms = [
      literal(partOf(whole)),
      '.',
      '\\d',
      '\\w',
      '\\W',
      '\\b',
      '[a-z0-9]',
      '[^ab]',
      '[日é]',
    ]
    const repeated = (): string =>
      `(?:${pick(atoms.filter((atom) => atom !== '\\b'))})${pick(['*', '+', '?', '{1,2}', '*?'])}`
    const parts = Array.from({ length: 1 + below(3) }, () => {
      const kind = below(4)
      if (kind === 0 && depth > 0)
        return `(${pattern(whole, depth - 1)}|${pattern(whole, depth - 1)})`
      return kind === 1 ? repeated() : pick(atoms)
    })
    const inner = parts.join('')
    if (depth < 2) return inner
    return `${pick(['', '', '(?i)'])}${pick(['', '', '^'])}${inner}${pick(['', '', '$'])}`
  }
  const regex = (whole: string): TextTest => ({ kind: 'regex', pattern: pattern(whole) })

  const textTest = (whole: string): TextTest => {
    const part = inOtherCase(partOf(whole))
    const bare = part.replaceAll(/\s/g, '')
    const isWord = /[\p{L}\p{N}]/u.test(bare)
    const kind = pick(['word', 'prefix', 'phrase', 'regex'] as const)
    if (kind === 'regex') return regex(whole)
    return isWord && kind !== 'phrase' ? { kind, text: bare } : { kind: 'phrase', text: part }
  }

  const makeClause = (events: readonly ModelEvent[]): Query => {
    const event = pick(events)
    const { message, host, traceId, source, exceptions } = event
    const places = [message, host, traceId, ...exceptions].filter((one) => one !== '')
    const [path, own] = pick([...leavesOf(event), [pick(NAMES), pick(['5', 'a'])] as const])
    const number = pick([...leavesOf(pick(events)).map(([, leaf]) => leaf), '5'].filter(isNumber))
    const field = { kind: 'attribute', name: path } as const
    const valueTests: readonly (() => ValueTest)[] = [
      () => ({ kind: 'equal', text: own }),
      () => ({ kind: 'prefix', text: Array.from(own).slice(0, 3).join('') || 'x' }),
      () => (own === '' ? { kind: 'equal', text: own } : regex(own)),
      () => ({ kind: 'range', from: isNumber(own) ? own : '-5', to: number }),
    ]
    const clauses: readonly (() => Query)[] = [
      () => ({ kind: 'text', test: textTest(pick(places)) }),
      () => ({
        kind: 'field',
        field: { kind: 'builtin', name: 'message' },
        tests: [textTest(message)],
      }),
      () => {
        const [name, whole] = pick([
          ['host', host || 'x'],
          ['trace', traceId || 'x'],
          ['source', source],
        ] as const)
        const test = pick<ValueTest>([
          { kind: 'equal', text: inOtherCase(whole) },
          { kind: 'prefix', text: inOtherCase(partOf(whole)) },
          regex(whole),
        ])
        return { kind: 'field', field: { kind: 'builtin', name }, tests: [test] }
      },
      () => ({ kind: 'field', field, tests: [pick(valueTests)(), pick(valueTests)()] }),
      () => ({
        kind: 'compare',
        field,
        operator: pick<Comparison>(['>', '>=', '<', '<=']),
        value: number,
      }),
      () => ({ kind: 'has', field: { ...field, name: pick([path, path.split('.')[0] || path]) } }),
    ]
    return pick(clauses)()
  }
  return { makeEvent, makeClause }
}
