/**
 * What a record means does not depend on how its line was read: the lines of a body and the same records as a
 * JSON array, which only the full parser reads, become the same rows.
 */
import * as fc from 'fast-check'
import t from 'tap'
import type { BodyResult } from '../../src/ingest/block.js'
import { bodyOf, createTestPipeline, SUBMISSION, type Row } from '../support/pipeline.js'
import { SEED, TIMES } from './settings.js'

const text = fc.oneof(
  { weight: 4, arbitrary: fc.string({ maxLength: 20 }) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 12 }) },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      'order 17 paid by card in 31 ms',
      '[ERROR] connection to 10.0.0.1:443 lost',
      'a"b\\c/d\b\f\n\r\t\0\u2028\u0085',
      '{"level":"warn","msg":"inner","k":[1,2]}',
      'x'.repeat(300),
      'été \u{1f600} 日本',
      '\ud800 lone \udc00',
      '',
      ' ',
    ),
  },
)
/** A number as it is written, beyond what a number of ours holds. */
class Raw {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}
const raw = (text: string): Raw => new Raw(text)

const SOURCES = [
  'shop',
  'api-1',
  'été',
  'a b',
  'x'.repeat(120),
  'y'.repeat(121),
  '',
  ' ',
  'c\u0007',
]
const time = fc.oneof(
  fc.constantFrom(
    '2026-01-02T03:04:05.678Z',
    '2026-01-02T03:04:05Z',
    '2026-01-02 03:04:05,123456+01:30',
    '1969-12-31T23:59:59Z',
    '0000-01-01T00:00:00Z',
    '9999-12-31T23:59:59Z',
    '2026-02-30T00:00:00Z',
    '2026-01-02T03:04:60Z',
    1_767_323_045,
    1_767_323_045_678,
    1_767_323_045.678,
    '1767323045678901234',
    ...['9007199254740993', '1e400', '-0', '1.767323045E9', '17673230456789012345'].map(raw),
    -1,
    1e300,
    null,
    true,
  ),
  fc
    .date({ min: new Date(0), max: new Date('2026-10-01'), noInvalidDate: true })
    .map((at) => at.toISOString()),
)
const SEVERITIES = [
  'INFO',
  'error',
  'Warn',
  'fatal',
  'DEBUG',
  3,
  30,
  17,
  'nonsense',
  '',
  null,
  {},
  'SEVERITY_NUMBER_WARN2',
]
const tagValue = fc.oneof(
  text,
  fc.integer(),
  fc.double(),
  fc.boolean(),
  fc.constant(null),
  fc.json().map((json): unknown => JSON.parse(json)),
)
const tags = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.dictionary(
      fc.oneof(text, fc.constantFrom('__proto__', 'constructor', 'k')),
      tagValue,
      { maxKeys: 4 },
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom<unknown>(null, 'a:b,c:d', [1], 7, '', {}) },
)

/** Names and values of a record, as pairs: an object would lose a name that comes twice. */
const member = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(fc.constant('message'), text) },
  { weight: 6, arbitrary: fc.tuple(fc.constant('source'), fc.constantFrom(...SOURCES)) },
  { weight: 4, arbitrary: fc.tuple(fc.constant('timestamp'), time) },
  { weight: 4, arbitrary: fc.tuple(fc.constant('severity'), fc.constantFrom(...SEVERITIES)) },
  {
    weight: 3,
    arbitrary: fc.tuple(
      fc.constantFrom('host', 'environment', 'trace_id', 'span_id', 'summary', 'dedup_key'),
      text,
    ),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(
      fc.constant('type'),
      fc.constantFrom('log', 'metric', 'trace', 'event', 'LOG', 'x', 1),
    ),
  },
  { weight: 2, arbitrary: fc.tuple(fc.constant('tags'), tags) },
  {
    weight: 1,
    arbitrary: fc.tuple(
      fc.constantFrom('msg', 'level', '@timestamp', 'service', 'app', '__proto__', ''),
      tagValue,
    ),
  },
  {
    weight: 2,
    arbitrary: fc.oneof(
      fc.tuple(fc.constantFrom('@timestamp', 'time'), time),
      fc.tuple(fc.constant('level'), fc.constantFrom(...SEVERITIES)),
      fc.tuple(
        fc.constantFrom('hostname', 'user_id', 'caller', 'v', 'status', 'a.b'),
        fc.oneof(fc.integer(), fc.constantFrom('x', '', null, true)),
      ),
    ),
  },
)
const usual: readonly (readonly [string, unknown])[] = [
  ['timestamp', '2026-01-02T03:04:05.678Z'],
  ['source', 'shop'],
  ['severity', 'INFO'],
  ['message', 'order 17 paid by card in 31 ms'],
]
/** Most producers send one shape with other values: some members of the usual record are changed. */
const record: fc.Arbitrary<readonly (readonly [string, unknown])[]> = fc
  .tuple(fc.boolean(), fc.array(member, { maxLength: 5 }))
  .map(([isUsual, members]) => {
    if (!isUsual) return members
    const changed = usual.map((own) => members.find(([name]) => name === own[0]) ?? own)
    return [...changed, ...members.filter(([name]) => !usual.some(([other]) => other === name))]
  })

/** How a producer writes JSON: blanks, escapes, the order of members. */
const style = fc.record({
  blank: fc.constantFrom('', '', '', ' ', '\t', '  '),
  escapes: fc.constantFrom('none', 'none', 'all', 'slash'),
  end: fc.constantFrom('', '', '\r', ' '),
})
type Style = typeof style extends fc.Arbitrary<infer T> ? T : never

function quoted(text: string, { escapes }: Style): string {
  const json = JSON.stringify(text)
  if (escapes === 'slash') return json.replaceAll('/', '\\/')
  if (escapes === 'none') return json
  const units = Array.from({ length: text.length }, (_, i) => text.charCodeAt(i))
  return `"${units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')}"`
}

function written(members: readonly (readonly [string, unknown])[], how: Style): string {
  const { blank } = how
  const text = (value: string): string => quoted(value, how)
  const json = (value: unknown): string => {
    if (value instanceof Raw) return value.text
    return typeof value === 'string' ? text(value) : JSON.stringify(value)
  }
  const inner = members.map(
    ([name, value]) => `${blank}${text(name)}${blank}:${blank}${json(value)}`,
  )
  return `{${inner.join(',')}${blank}}`
}

const HIDDEN = new Set([
  'id',
  'received_at',
  'is_new',
  'n',
  'priority',
  'priority_source',
  'confidence',
  // a message whose signature is new is stored whole; `message` has both forms whole
  'constant_text',
  'variables',
])

/** What a row says, without what depends on when it came. */
const shown = (rows: readonly Row[]): string[] =>
  rows.map((row) =>
    JSON.stringify(
      Object.entries(row).filter(([name]) => !HIDDEN.has(name)),
      (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value),
    ),
  )

const counts = (rows: readonly Row[]): number =>
  rows.reduce((sum, row) => sum + Number(row['n']), 0)

t.test(
  'lines become the rows that the same records become in an array',
  { timeout: 0 },
  async (t) => {
    t.comment(`FUZZ_SEED=${SEED}`)
    const rig = await createTestPipeline(t)
    let seen = 0
    const rowsOf = async (body: string) => {
      const result = await rig.pipeline.submit({ ...SUBMISSION, bytes: bodyOf(body) })
      const all = await rig.landing()
      const rows = all.slice(seen)
      seen = all.length
      return { result, rows }
    }
    const records = fc.array(fc.tuple(record, style), { minLength: 1, maxLength: 25 })
    await fc.assert(
      fc.asyncProperty(records, async (sent) => {
        // a body that is no object as a whole: the first line stands alone
        const first = '{"source":"shop","message":"first"}'
        const lines = [first, ...sent.map(([members, how]) => written(members, how) + how.end)]
        const asLines = await rowsOf(lines.join('\n'))
        const asArray = await rowsOf(`[${lines.join(',')}]`)
        const { received, accepted, rejected, dropped } = asLines.result
        t.equal(received, lines.length)
        t.equal(received, accepted + rejected + dropped)
        t.same(pick(asLines.result), pick(asArray.result))
        t.equal(counts(asLines.rows), accepted)
        t.strictSame(withoutNow(shown(asLines.rows)), withoutNow(shown(asArray.rows)))
      }),
      { seed: SEED, numRuns: 150 * TIMES },
    )
  },
)

const pick = ({ received, accepted, rejected, dropped, errors, sources }: BodyResult) => ({
  received,
  accepted,
  rejected,
  dropped,
  sources: sources.toSorted(),
  errors: errors.map(({ line, code }) => `${line} ${code}`),
})

/** Records without a time are of the moment they came. */
const withoutNow = (rows: readonly string[]): readonly string[] => {
  const now = String(Date.now()).slice(0, 6)
  return rows
    .map((row) => row.replaceAll(new RegExp(`"ts","?${now}\\d{7}"?`, 'g'), '"ts","now"'))
    .toSorted()
}
