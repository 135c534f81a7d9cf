import * as fc from 'fast-check'
import t from 'tap'
import type { Query } from '../../../src/query/ast.js'
import { readName } from '../../../src/query/fields.js'
import { findExcess, findLoneRegex } from '../../../src/query/limits.js'
import { completeQuery } from '../../../src/query/completion.js'
import type { QueryFault } from '../../../src/query/fault.js'
import { MAX_CLAUSES, MAX_DEPTH, MAX_LINE, parseQuery } from '../../../src/query/parser.js'
import { printQuery } from '../../../src/query/printer.js'
import { anyQuery } from './arbitrary.js'

const SEED = Number(process.env['SEED'] ?? 11)
t.comment(`SEED=${SEED}`)

const parsed = (line: string): Query => {
  const { query, fault } = parseQuery(line)
  if (query === null) throw new Error(`${line}: ${fault.message}`)
  return query
}
const attribute = (name: string) => ({ kind: 'attribute', name }) as const
const builtin = (name: string) => ({ kind: 'builtin', name }) as const
const text = (kind: string, of: string) => ({ kind: 'text', test: { kind, text: of } })
const field = (name: string, ...tests: object[]) => ({ kind: 'field', field: builtin(name), tests })
const equal = (of: string) => ({ kind: 'equal', text: of })

t.test('a query is printed as a line that is parsed as the same query', async () => {
  const same = (query: Query): void => {
    const line = printQuery(query)
    if (line.length > MAX_LINE) return
    const { query: again, fault } = parseQuery(line)
    if (fault !== null) throw new Error(`${JSON.stringify(line)}: ${fault.message}`)
    if (JSON.stringify(again) !== JSON.stringify(query))
      throw new Error(`${JSON.stringify(line)} is ${JSON.stringify(again)}`)
    if (printQuery(again) !== line) throw new Error(`${line} is printed as ${printQuery(again)}`)
  }
  fc.assert(fc.property(anyQuery, same), { seed: SEED, numRuns: 3000 })
})

/** Pieces of lines that are often put together wrongly. */
const PIECES = [
  ...Array.from('ab1 -/\\*"():,<>=.!{}'),
  'host:',
  'source:shop,',
  ' OR ',
  ' AND ',
  'NOT ',
  'severity>=',
  'severity=',
  'level:',
  'eror',
  'count',
  ' > ',
  ' = ',
  '5..2',
  '&&',
  'https://a/b',
  'C:\\temp\\',
  '{"a":"b"}',
  'toString',
  '\ud800',
]
const anyPieces = fc
  .array(fc.constantFrom(...PIECES), { maxLength: 14 })
  .map((pieces) => pieces.join(''))
/** Queries with a character left out, doubled or put in. */
const anyDamaged = fc
  .tuple(anyQuery.map(printQuery), fc.nat(200), fc.nat(2), fc.constantFrom(...PIECES))
  .map(([line, place, length, piece]) => {
    const at = place % (line.length + 1)
    return line.slice(0, at) + piece.repeat(length % 2) + line.slice(at + length)
  })
const mended = (line: string, { position, length, suggestion }: QueryFault): string =>
  line.slice(0, position) + suggestion + line.slice(position + length)

t.test('any line is a query or a fault within it, and its canonical form stays', async (t) => {
  let suggested = 0
  const isWithin = (line: string, { position, length, message }: QueryFault): void => {
    const isInside = position >= 0 && length > 0 && position + length <= line.length
    if (!isInside || message === '')
      throw new Error(`${JSON.stringify(line)}: ${position} ${length}`)
  }
  /** A suggestion makes the line a query. */
  const helps = (line: string, fault: QueryFault): void => {
    isWithin(line, fault)
    if (fault.suggestion === null) return
    suggested += 1
    const better = mended(line, fault)
    const { fault: other } = parseQuery(better)
    if (other !== null) throw new Error(`${line}: ${better}: ${other.message}`)
  }
  const whatever = (line: string): void => {
    const result = parseQuery(line)
    if (result.fault !== null) {
      helps(line, result.fault)
      return
    }
    for (const hint of result.hints) helps(line, hint)
    const canonical = printQuery(result.query)
    if (canonical.length > MAX_LINE) return
    const again = parsed(canonical)
    if (JSON.stringify(again) !== JSON.stringify(result.query))
      throw new Error(JSON.stringify(line))
  }
  const options = { seed: SEED, numRuns: Number(process.env['RUNS'] ?? 5000) }
  fc.assert(fc.property(fc.oneof(anyPieces, anyDamaged), whatever), options)
  t.ok(suggested > options.numRuns / 20, `${suggested} suggestions`)
})

t.test('a query that is being typed is completed at each position, and never fails', async () => {
  const typed = (line: string): void => {
    for (let at = 0; at <= line.length; at += 1) {
      parseQuery(line.slice(0, at))
      const { position, length } = completeQuery(line, at)
      if (position < 0 || length < 0 || position + length > line.length)
        throw new Error(`${JSON.stringify(line)} at ${at}: ${position} ${length}`)
    }
  }
  fc.assert(fc.property(fc.oneof(anyPieces, anyQuery.map(printQuery)), typed), {
    seed: SEED,
    numRuns: 300,
  })
})

t.test('a canonical line is printed as it was written', async (t) => {
  for (const line of [
    '',
    'severity:error source:checkout -host:web-1 "connection refused" template:e37d3b03b6a56cd1 duration_ms>300',
    'severity>=warning (source:checkout OR source:cart) priority:P1,P2 region:eu-* has:trace count>10 new:1h',
    'user.id:42 http.status:500..599 -has:user message:/timeout after \\d+ ms/ trace:4bf92f35',
    'tag.host:x tag.tag.host:y user-agent:curl',
    'a OR (b c) OR -(d OR e)',
    '-*',
    'pay* 10.0.0.9 日本語 \\OR \\/var/log "C:\\\\temp"',
    '"user id":"a b","c,d" path:"/api/users" "a b">=5',
    'message:refused,"timed out",pay*,/x\\/y/',
    'severity:warning..critical id:1,5..9 version:"1..2"',
  ])
    t.equal(printQuery(parsed(line)), line)
})

t.test('other ways to write the same', async (t) => {
  const is = (line: string, canonical: string) => t.equal(printQuery(parsed(line)), canonical, line)
  is('  a   b\tc\n', 'a b c')
  is('a AND b AND NOT c', 'a b -c')
  is('((a)) (b c)', 'a b c')
  is('a OR (b OR c)', 'a OR b OR c')
  is('a b OR c d', '(a b) OR (c d)')
  is('--verbose', '--verbose')
  is('host:*', 'has:host')
  is('has:user,trace', 'has:user OR has:trace')
  is('*', '')
  is('severity:ERR,warn priority:p1 type:LOG', 'severity:error,warning priority:P1 type:log')
  is('template:E37D3B03B6A56CD1', 'template:e37d3b03b6a56cd1')
  is('host:"web-1" region:"eu-*"', 'host:web-1 region:"eu-*"')
  is('tag.user.id:1', 'user.id:1')
  is('"connection refused"retry', '"connection refused" retry')
  is('constructor toString OR valueOf', '(constructor toString) OR valueOf')
  is('count>"10"', 'count>10')
})

t.test('every node of the tree has its place in the line', async (t) => {
  t.same(parsed('refused pay* "a b" /x y/'), {
    kind: 'and',
    nodes: [
      text('word', 'refused'),
      text('prefix', 'pay'),
      text('phrase', 'a b'),
      { kind: 'text', test: { kind: 'regex', pattern: 'x y' } },
    ],
  })
  t.same(parsed('a OR b c'), {
    kind: 'or',
    nodes: [text('word', 'a'), { kind: 'and', nodes: [text('word', 'b'), text('word', 'c')] }],
  })
  t.same(parsed('NOT a b'), {
    kind: 'and',
    nodes: [{ kind: 'not', node: text('word', 'a') }, text('word', 'b')],
  })
  t.same(parsed('host:web-1,"web 2",web-3*'), {
    ...field('host', equal('web-1'), equal('web 2'), { kind: 'prefix', text: 'web-3' }),
  })
  t.same(parsed('user.id:42'), { kind: 'field', field: attribute('user.id'), tests: [equal('42')] })
  t.same(parsed('tag.host:x'), { kind: 'field', field: attribute('host'), tests: [equal('x')] })
  t.same(parsed('t<=-1.5'), {
    kind: 'compare',
    field: attribute('t'),
    operator: '<=',
    value: '-1.5',
  })
  t.same(parsed('a->b x=>y =5'), {
    kind: 'and',
    nodes: [text('word', 'a->b'), text('word', 'x=>y'), text('word', '=5')],
  })
  t.same(parsed('/var/log/ /a/b/c'), {
    kind: 'and',
    nodes: [text('word', '/var/log/'), text('word', '/a/b/c')],
  })
  t.same(parsed('v:1\\..2 v:1.\\.2 v:1..2'), {
    kind: 'and',
    nodes: [
      { kind: 'field', field: attribute('v'), tests: [equal('1..2')] },
      { kind: 'field', field: attribute('v'), tests: [equal('1..2')] },
      { kind: 'field', field: attribute('v'), tests: [{ kind: 'range', from: '1', to: '2' }] },
    ],
  })
  t.same(parsed('message:a'), field('message', { kind: 'word', text: 'a' }))
  t.same(parsed('message:"a"'), field('message', { kind: 'phrase', text: 'a' }))
  t.same(parsed('dir:C\\:\\\\x path:a\\b'), {
    kind: 'and',
    nodes: [
      { kind: 'field', field: attribute('dir'), tests: [equal('C:\\x')] },
      { kind: 'field', field: attribute('path'), tests: [equal('a\\b')] },
    ],
  })
  t.same(parsed('-host:""'), { kind: 'not', node: field('host', equal('')) })
})

t.test('a fault says where it is, and its suggestion helps', async (t) => {
  /** The marked text, and the line with the suggestion in its place. */
  const wrong = (line: string, marked: string, message: RegExp, mended: string | null) => {
    const { fault } = parseQuery(line)
    if (fault === null) throw new Error(`${line} is a query`)
    const { position, length, suggestion } = fault
    t.equal(line.slice(position, position + length), marked, line)
    t.match(fault.message, message, line)
    const better =
      suggestion === null
        ? null
        : line.slice(0, position) + suggestion + line.slice(position + length)
    t.equal(better, mended, line)
    if (better !== null) t.equal(parseQuery(better).fault, null, better)
  }
  wrong('a (b', '(b', /no \)/, 'a (b)')
  wrong('a (', '(', /no \)/, null)
  wrong('-(a (b', '(b', /no \)/, '-(a (b))')
  wrong('(a (b "c', '"c', /not closed/, '(a (b "c"))')
  wrong('a "', '"', /not closed/, null)
  wrong('(OR)', 'OR', /before OR/, null)
  wrong('a)', ')', /no \(/, 'a')
  wrong('()', '()', /nothing between/, '')
  wrong('a "b c', '"b c', /not closed/, 'a "b c"')
  wrong('"b\\', '"b\\', /not closed/, '"b\\\\"')
  wrong('a ""', '""', /nothing between/, null)
  wrong('a OR', 'OR', /after OR/, 'a ')
  wrong('OR a', 'OR', /before OR/, ' a')
  wrong('a AND', 'AND', /between two/, 'a ')
  wrong('AND a', 'AND', /between two/, ' a')
  wrong('a NOT', 'NOT', /exclude/, 'a ')
  wrong('a -- b', '--', /letter or a digit/, 'a "--" b')
  wrong('a => b', '=>', /letter or a digit/, 'a "=>" b')
  wrong('a && b', '&&', /written AND/, 'a AND b')
  wrong('a || b', '||', /written OR/, 'a OR b')
  wrong('a ! b', '!', /written NOT/, 'a NOT b')
  wrong('message:&&', '&&', /letter or a digit/, 'message:"&&"')
  wrong('{"a":"b"}', '{', /letter or a digit/, null)
  wrong('🔥', '🔥', /letter or a digit/, '"🔥"')
  wrong('count > 10', 'count > 10', /without blanks/, 'count>10')
  wrong('host:', 'host:', /value of host is missing/, null)
  wrong('host: web-1', 'host: web-1', /blank/, 'host:web-1')
  wrong('host:a, b', ', b', /after the comma/, 'host:a,b')
  wrong('host:a,', ',', /after the comma/, null)
  wrong('host:(a OR b)', '(', /host:a,b/, null)
  wrong('message:(timed out)', '(', /message:a,b/, null)
  wrong('host:a,*', '*', /no value of a list/, null)
  wrong('host:fe80::1 x', 'fe80::1', /quotes/, 'host:"fe80::1" x')
  wrong('(at:12:30)', '12:30', /quotes/, '(at:"12:30")')
  wrong('url:a(b', 'a(b', /quotes/, 'url:"a(b"')
  wrong('host:a"b"', 'a"b"', /quotes/, 'host:"a\\"b\\""')
  wrong('host:"a b"c d', '"a b"c', /quotes/, null)
  wrong('x:{"a":"b"}', '{"a":"b"}', /quotes/, 'x:"{\\"a\\":\\"b\\"}"')
  wrong('source:shop,severity:error', ',', /comma/, 'source:shop severity:error')
  wrong('source:shop,user.id:42', 'user.id:42', /quotes/, null)
  wrong('severity=error,fatal', 'severity=', /the field/, 'severity:error,fatal')
  wrong('host = web-*', 'host = web-*', /without blanks/, 'host:web-*')
  wrong('count = ten', 'count = ten', /without blanks/, null)
  wrong('count: ten', 'count: ten', /blank/, null)
  wrong('severity:eror2 "timed out', 'eror2', /one of debug/, null)
  wrong('(https://shop:80/a b)', 'https://shop:80/a', /URL/, '("https://shop:80/a" b)')
  wrong('a, b', ',', /comma/, 'a  b')
  wrong('a,b', ',', /comma/, 'a b')
  wrong('message:""', '""', /nothing between/, null)
  wrong(':x', ':', /no field/, null)
  wrong('a host :web-1', ':', /no field/, null)
  wrong('severity = error', 'severity = error', /without blanks/, 'severity:error')
  wrong('a == b', 'a == b', /without blanks/, 'a:b')
  wrong('severity:>=warning', 'severity:>=warning', /comparison/, 'severity>=warning')
  wrong('-severity:>warn', 'severity:>warn', /comparison/, '-severity>warn')
  wrong('count:>10 a', 'count:>10', /comparison/, 'count>10 a')
  wrong('"":x', '"":', /name of the field/, null)
  wrong('severity:eror2', 'eror2', /one of debug/, 'severity:error')
  wrong('severity>=warnin', 'warnin', /one of debug/, 'severity>=warning')
  wrong('severity:5', '5', /one of debug/, null)
  wrong('priority:P5', 'P5', /one of P1/, null)
  wrong('priority>P2', 'P2', /no order/, null)
  wrong('sevrity>=warning', 'warning', /number.*severity\?/, null)
  wrong('duration_ms>fast', 'fast', /number/, null)
  wrong('count:ten', 'ten', /whole numbers/, null)
  wrong('count>1.5', '1.5', /whole numbers/, null)
  wrong('id:9007199254740993', '9007199254740993', /whole numbers/, null)
  wrong('template:e37d', 'e37d', /16 hex/, null)
  wrong('new:soon', 'soon', /time span/, null)
  wrong('new:0h', '0h', /time span/, null)
  wrong('has:new', 'new', /not a field/, null)
  wrong('has:us*', 'us*', /name of a field/, null)
  wrong('application:/a/', '/a/', /no regular/, null)
  wrong('web-*-1', 'web-*-1', /end of a word/, null)
  wrong('*timeout*', '*timeout*', /end of a word/, null)
  wrong('message:*a.b', '*a.b', /end of a word/, null)
  wrong('host:*.b', '*.b', /end of a word/, null)
  wrong('host:a*b,c', 'a*b', /end of a word/, null)
  wrong('region:*u-*', '*u-*', /end of a word/, null)
  wrong('application:*a', '*a', /end of a word/, null)
  wrong('host:**', '**', /end of a word/, null)
  wrong('/a(b/', '/a(b/', /this \( has no \)/, null)
  wrong('message:/(?=a)/', '/(?=a)/', /look-around/, null)
  wrong('/(a)\\1/', '/(a)\\1/', /back-references/, null)
})

t.test('a regular expression without another clause is marked', async (t) => {
  const marked = (line: string) => {
    const result = parseQuery(line)
    const lone = result.fault === null ? findLoneRegex(result.query) : null
    if (result.fault !== null || lone === null) return null
    const { position = 0, length = 0 } = result.faultOf(lone.clause, lone.message) ?? {}
    return line.slice(position, position + length)
  }
  t.equal(marked('/a b/'), '/a b/')
  t.equal(marked('message:/a/'), 'message:/a/')
  t.equal(marked('-/a/ /b/'), '/a/')
  t.equal(marked('x OR /a/'), '/a/')
  t.equal(marked('(x OR /a/) /b/'), '/a/')
  t.equal(marked('* /a/'), '/a/')
  t.equal(marked('user:b,/a/ -/c/'), 'user:b,/a/')
  t.equal(marked('x /a/'), null)
  t.equal(marked('-x /a/'), null, 'an exclusion is a clause')
  t.equal(marked('x (/a/ OR -/b/)'), null)
  t.equal(marked('severity:error message:/a/'), null)
  t.equal(marked('count>1 /a/'), null)
  t.equal(marked('(x OR y) /a/'), null)
})

t.test('the clause beyond a limit is marked', async (t) => {
  const marked = (line: string) => {
    const result = parseQuery(line)
    const excess = result.fault === null ? findExcess(result.query) : null
    if (result.fault !== null || excess === null) return null
    const { position = 0, length = 0 } = result.faultOf(excess.clause, excess.message) ?? {}
    return line.slice(position, position + length)
  }
  t.equal(marked('aa* bb* cc*'), 'cc*')
  t.equal(marked('severity:error (aa* OR -message:bb*,cc*)'), 'message:bb*,cc*')
  t.equal(marked(`${'word '.repeat(16)}"the last"`), '"the last"')
  t.equal(marked(`${'a.b:1 '.repeat(31)}has:user,trace,team.name`), 'team.name')
  t.equal(marked('count>1 (new:1h count:2..3) new:2h -count<=9'), 'count<=9')
  t.equal(marked('word '.repeat(16)), null)
})

t.test('the name of one field outside of a line', async (t) => {
  t.same(readName('user name'), attribute('user name'))
  t.same(readName('"user name"'), attribute('user name'))
  t.same(readName('"a,\\"b\\\\c\\d"'), attribute('a,"b\\c\\d'))
  t.same(readName('host'), { kind: 'builtin', name: 'host' })
  for (const text of ['a,b', '"a', '"a" "b"', '"a\\"']) t.equal(readName(text), null, text)
})

t.test('a line is bounded', async (t) => {
  const fault = (line: string) => parseQuery(line).fault?.message ?? null
  t.equal(fault('a'.repeat(MAX_LINE)), null)
  t.match(fault('a'.repeat(MAX_LINE + 1)), /2000 characters/)
  t.equal(fault('a '.repeat(MAX_CLAUSES)), null)
  t.match(fault('a '.repeat(MAX_CLAUSES + 1)), /200 clauses/)
  t.equal(fault(`host:a${',a'.repeat(MAX_CLAUSES - 1)}`), null)
  t.match(fault(`host:a${',a'.repeat(MAX_CLAUSES)}`), /200 clauses/)
  t.equal(fault('('.repeat(MAX_DEPTH) + 'a' + ')'.repeat(MAX_DEPTH)), null)
  t.match(fault('('.repeat(MAX_DEPTH + 1) + 'a' + ')'.repeat(MAX_DEPTH + 1)), /20 times/)
  t.equal(fault(`${'-'.repeat(MAX_DEPTH)}a`), null)
  t.match(fault(`${'-'.repeat(MAX_DEPTH + 1)}a`), /20 times/)
  t.match(fault(`${'a (b c OR '.repeat(15)}d${')'.repeat(15)}`), /20 times/, 'and when printed')
  t.match(fault('('.repeat(MAX_LINE)), /20 times|no \)/)
  t.match(fault(`${'k'.repeat(129)}:x`), /128 characters/)
  t.equal(fault(`${'k'.repeat(128)}:x`), null)
})

t.test('what is read as something else than it looks like is pointed out', async (t) => {
  const hints = (line: string) => {
    const result = parseQuery(line)
    return result.fault === null
      ? result.hints.map(({ position, length, suggestion }) => [
          line.slice(position, position + length),
          suggestion,
        ])
      : null
  }
  t.same(hints('a sevrity:error'), [['sevrity', 'severity']])
  t.same(hints('Host:x level:error has:trace_id'), [
    ['Host', 'host'],
    ['level', 'severity'],
    ['trace_id', 'trace'],
  ])
  t.same(hints('host:x user:x pid:1 hash:x post:x tag.hosts:x'), [])
  t.same(hints('"hosts":x'), [])
  t.same(hints('level:30 occurrence_count:many severity=high'), [], 'a hint is a query')
  t.same(hints('a (severity=error) host!="web 1" type==log'), [
    ['severity=', 'severity:'],
    ['host!=', '-host:'],
    ['type==', 'type:'],
  ])
  t.same(hints('user=bob message:severity=error \\severity=error path=/a =5'), [])
  t.same(hints('a https://shop/cart?id=1,2 b'), [
    ['https://shop/cart?id=1,2', '"https://shop/cart?id=1,2"'],
  ])
  t.same(hints('url:"https://shop/cart" path:/a/b at://'), [])
  t.same(hints('!timeout a !source:shop'), [
    ['!', '-'],
    ['!', '-'],
  ])
  t.same(hints('\\!timeout "!timeout" /!a/ message:!a a! -a:!b'), [])
  t.same(hints('count:5..2 x:1,2.5..-1 severity:err..warn -id:10..9'), [
    ['5..2', '2..5'],
    ['2.5..-1', '-1..2.5'],
    ['err..warn', 'warning..error'],
    ['10..9', '9..10'],
  ])
  t.same(hints('duration_ms:>300 -"a b":<=-1.5'), [
    ['duration_ms:>300', 'duration_ms>300'],
    ['"a b":<=-1.5', '"a b"<=-1.5'],
  ])
  t.same(hints('x:">300" x:\\>300 x:>a x:1..5 x:>1,2 host:>5 region:eu..'), [])
  t.same(hints('count:2..5 x:10..10 y:9..10 severity:warn..err "5..2" z:b..a'), [])
})
