import { test } from 'tap'
import { NO_ATTRIBUTES } from '../../../src/alerting/attributes.js'
import { queryMatcherOf, type Row } from '../../../src/alerting/query-matcher.js'
import type { Query } from '../../../src/query/ast.js'
import { parseQuery } from '../../../src/query/parser.js'

const ROW: Row = {
  source: 'shop',
  host: 'web-1',
  environment: 'production',
  severity: 'ERROR',
  priority: 'P2',
  type: 'log',
  template: '00000000000000ab',
  texts: new Set(),
  attributes: NO_ATTRIBUTES,
}

function parsed(line: string): Query {
  const { query, fault } = parseQuery(line)
  if (query === null) throw new Error(`${line}: ${fault.message}`)
  return query
}

void test('columns are matched as a query says', async (t) => {
  const matches = (line: string): boolean | null =>
    queryMatcherOf(parsed(line))?.matches(ROW) ?? null
  for (const line of [
    '',
    'source:shop',
    '(source:till OR source:shop)',
    'host:web-*',
    'severity>=error',
    'severity:error,critical',
    'priority:P2 type:log',
    'template:00000000000000ab',
    'NOT source:till',
    'source:till OR host:web-1',
    '-severity:info source:shop',
  ])
    t.equal(matches(line), true, line)
  for (const line of [
    'source:Shop',
    'host:web-2*',
    'severity>error',
    'source:shop severity:info',
    'template:00000000000000ac',
    'NOT (source:shop OR source:till)',
  ])
    t.equal(matches(line), false, line)
  for (const line of ['/lo.t/', 'source:/sh.p/', 'user.id:4*', 'message:/x/', 'has:trace'])
    t.equal(matches(line), null, line)
})

void test('texts match where they were found', async (t) => {
  const matcher = queryMatcherOf(parsed('source:shop (lost OR message:"in vain") -lost'))
  const [lost = '', inVain = '', again] = matcher?.texts.map(({ key }) => key) ?? []
  t.equal(again, lost, 'the same text has one key')
  const matches = (...texts: string[]) => matcher?.matches({ ...ROW, texts: new Set(texts) })
  t.same(
    [matches(), matches(lost), matches(inVain), matches(lost, inVain)],
    [false, false, true, false],
  )
})

void test('only rows of the named sources are looked at', async (t) => {
  const sourcesOf = (line: string) => queryMatcherOf(parsed(line))?.sources ?? null
  t.same(sourcesOf('source:a,b severity:error'), ['a', 'b'])
  t.equal(sourcesOf('source:a OR host:b'), null)
  t.equal(sourcesOf('NOT source:a'), null)
  t.equal(sourcesOf('source:a*'), null)
})
