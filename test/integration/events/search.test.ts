import {
  array,
  assert,
  asyncProperty,
  constantFrom,
  oneof,
  sample,
  string,
  tuple,
} from 'fast-check'
import { t as suite, test } from 'tap'
import { cutMessage } from '../../../bench/data/cut-message.js'
import { DELIMITER, toConstantText, wholeMessage } from '../../../src/model/stored-message.js'
import { toConditions } from '../../../src/events/conditions.js'
import { createEvents } from '../../../src/events/events.js'
import { toWords } from '../../../src/model/words.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'
import { filterOf, type Asked } from '../../support/event-filter.js'
import { applySchema } from '../../support/landing.js'
import { MINUTE_MS, HOUR_MS, DAY_MS } from '../../../src/model/time.js'

const server = await startTestServer()
suite.teardown(() => server.stop())

const literal = oneof(
  constantFrom(
    ' ',
    ' from ',
    'user=',
    ' (took ',
    ' ms) ',
    'Grüße, ',
    ' - ',
    'Failed password for ',
    '/x/',
  ),
  string({ unit: constantFrom('a', 'b', ' ', ':', '=', 'É', '_', '日'), maxLength: 8 }),
)
const value = oneof(
  constantFrom('bob', '17', '10.0.0.1', 'Straße', 'a b', '', 'ab', 'x_y', DELIMITER),
  string({ unit: constantFrom('a', 'B', ' ', '.', 'é', '本'), maxLength: 6 }),
)
const pattern = tuple(
  array(literal, { minLength: 1, maxLength: 5 }),
  array(array(value, { minLength: 5, maxLength: 5 }), { minLength: 3, maxLength: 3 }),
)

/** The search words of a message as the worker computes them: all its words when it has letters beyond ASCII. */
const searchWords = (message: string): string =>
  /^\p{ASCII}*$/u.test(message) ? '' : toWords(message).join(' ')

interface Stored {
  readonly message: string
  readonly constantText: string
  readonly variables: string
}

/** Messages of templates, and what a worker would store of each. */
function toStored([literals, rows]: readonly [string[], string[][]]): Stored[] {
  const constantText = toConstantText(literals)
  return rows.flatMap((values) => {
    const message =
      literals[0] +
      literals
        .slice(1)
        .map((text, i) => (values[i] ?? '') + text)
        .join('')
    const variables = cutMessage(constantText, message)
    return message === ''
      ? []
      : [
          {
            message,
            constantText: variables === null ? '' : constantText,
            variables: variables ?? message,
          },
        ]
  })
}

void test('a search finds the same messages whether they are stored in two columns or whole', async (t) => {
  const seed = Number(process.env['SEED'] ?? 7)
  t.comment(`seed ${seed}`)
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  const stored = sample(pattern, { seed, numRuns: 80 }).flatMap(toStored)
  for (const { message, constantText, variables } of stored)
    if (wholeMessage(constantText, variables) !== message)
      t.fail('not the message', { message, constantText, variables })
  const split = stored.filter(({ constantText }) => constantText !== '').length
  t.ok(split > 60 && split < stored.length, `${split} of ${stored.length} are split`)
  const now = Date.now()
  const rows = stored.flatMap(({ message, constantText, variables }, i) => {
    const row = {
      is_new: 1,
      n: 1,
      received_at: new Date(now).toISOString(),
      ts: new Date(now - i).toISOString(),
      type: 'log',
      severity: 'INFO',
      priority: 'P4',
      search_words: searchWords(message),
    }
    return [
      { ...row, id: 2 * i + 1, source: 'whole', constant_text: '', variables: message },
      { ...row, id: 2 * i + 2, source: 'split', constant_text: constantText, variables },
    ]
  })
  for (let from = 0; from < rows.length; from += 100)
    await store.insertRows('landing', rows.slice(from, from + 100))
  const events = createEvents(store)
  let matches = 0
  const find = async (source: string, search: string): Promise<readonly number[]> => {
    const filter = filterOf({ source: [source], search })
    const { events: page } = await events.page({
      filter,
      fromMs: 0,
      toMs: null,
      after: null,
      limit: 1000,
    })
    for (const { id, message } of page) {
      const wanted = stored[Math.floor((id - 1) / 2)]?.message
      if (message !== wanted) t.fail('another message', { id, message, wanted })
    }
    return page.map(({ id }) => Math.floor((id - 1) / 2))
  }
  const isSame = async (search: string): Promise<boolean> => {
    const [whole, other] = await Promise.all([find('whole', search), find('split', search)])
    matches += whole.length
    return whole.join() === other.join()
  }
  const messages = stored.map(({ message }) => message)
  const part = tuple(
    constantFrom(...messages),
    constantFrom(0, 0.2, 0.4, 0.6),
    constantFrom(2, 5, 9, 30),
  ).map(([message, at, length]) => {
    const from = Math.floor(message.length * at)
    return message.slice(from, from + length).replaceAll('"', '')
  })
  const term = oneof(
    part,
    part.map((text) => `"${text}"`),
    part.map((text) => `"${text.toUpperCase()}"`),
    part.map((text) => `${text.trimEnd()}*`),
    constantFrom(
      'bob',
      'from',
      'FAILED',
      'grüße',
      '日*',
      'user=bob',
      '"user=b"',
      '"- "',
      '"="',
      'x y',
    ),
    value.map((text) => text.replaceAll('"', '')),
  )
  const search = array(term, { minLength: 1, maxLength: 3 }).map((terms) => terms.join(' '))
  await assert(asyncProperty(search, isSame), { seed, numRuns: 80 })
  t.ok(matches > 200, `${matches} matches`)
})

void test('words and prefixes are found in variables, constant texts, hosts and traces, in young and in merged parts', async (t) => {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  const now = Date.now()
  const row = (id: number, fields: object): object => ({
    id,
    is_new: 1,
    n: 1,
    ts: new Date(now + id).toISOString(),
    received_at: new Date(now).toISOString(),
    source: 'web',
    ...fields,
  })
  const umlauts = 'Grüße an Jürgen, Über 17 Wörter'
  const rows = [
    row(1, {
      variables: 'alice',
      constant_text: `user ${DELIMITER} logged in`,
      host: 'Web-01.example',
    }),
    row(2, { variables: umlauts, search_words: searchWords(umlauts), host: 'db-2' }),
    row(3, { variables: 'nothing of it', trace_id: 'AB12cd-34ef', host: 'db-2' }),
    row(4, { variables: 'quetzalcoatl', constant_text: `user ${DELIMITER} left`, host: 'web-02' }),
  ]
  for (const one of rows) await store.insertRows('landing', [one])
  const find = async (search: string): Promise<readonly number[]> => {
    const query = { filter: filterOf({ search }), fromMs: 0, toMs: null, after: null, limit: 9 }
    return (await createEvents(store).page(query)).events.map(({ id }) => id)
  }
  const wanted: Readonly<Record<string, readonly number[]>> = {
    Alice: [1],
    user: [4, 1],
    'user web': [4, 1],
    'web 01 example user alice logged in': [1],
    'web 01 example user alice logged out': [],
    'db 2': [3, 2],
    ab12cd: [3],
    '34ef nothing': [3],
    jürgen: [2],
    über: [2],
    quetzalcoatl: [4],
    quetz: [],
    'quetz*': [4],
    'log*': [1],
    'exam*': [1],
    'ab1*': [3],
    'jür*': [2],
    'etzal*': [],
    'we* us*': [4, 1],
    'db 2 wör*': [2],
  }
  for (const parts of ['young', 'merged']) {
    for (const [search, ids] of Object.entries(wanted))
      t.same(await find(search), ids, `${search}, ${parts}`)
    await store.command('OPTIMIZE TABLE events FINAL')
  }
})

void test('a word of variables is searched in few events at once, one of constant texts in the newest first', async (t) => {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  const now = Date.now()
  const rows = Array.from({ length: 100 }, (_, i) => ({
    id: i + 1,
    is_new: 1,
    // The first range ends with the newest event.
    n: i === 99 ? 60_000 : 1,
    ts: new Date(now - (100 - i) * 12 * HOUR_MS).toISOString(),
    received_at: new Date(now).toISOString(),
    source: 'web',
    variables: `id${i} ${i % 20 === 0 ? 'zebra' : 'horse'}`,
    constant_text: `${i % 10 === 0 ? 'left' : 'joined'} ${DELIMITER} z`,
    host: i === 40 ? 'zebra-1' : 'h1',
  }))
  await store.insertRows('landing', rows)
  let pages: number[] = []
  const counting: typeof store = Object.create(store, {
    query: {
      value: (async (question, params, options) => {
        const { from_ms: fromMs } = params as { from_ms?: number }
        if (question.name === 'event_page') pages.push(fromMs ?? -1)
        return await store.query(question, params, options)
      }) satisfies typeof store.query,
    },
  })
  const events = createEvents(counting)
  const find = async (filter: Asked, limit = 50): Promise<number[]> => {
    pages = []
    const query = { filter: filterOf(filter), fromMs: 0, toMs: null, after: null, limit }
    return (await events.page(query)).events.map(({ id }) => id)
  }
  const every = (step: number): number[] =>
    rows
      .map(({ id }) => id)
      .filter((id) => (id - 1) % step === 0)
      .toReversed()

  t.same(await find({ search: 'id17' }), [18])
  t.same(pages, [0])
  t.same(await find({ search: 'zebra' }), every(20), 'a host has it too')
  t.ok(pages.length > 1)
  t.same(await find({ search: 'left id20 zebra' }), [21])
  t.same(pages, [0], 'one of the words is enough')
  t.same(await find({ search: 'left' }), every(10))
  t.ok(pages.length > 1)
  t.same(await find({ search: 'id17', source: ['web'], severity: ['DEBUG'] }), [18])
  t.same(pages, [0])
  const newest = every(1).filter((id) => (id - 1) % 20 !== 0)
  t.same(await find({ search: 'horse' }, 1), newest.slice(0, 1))
  t.same(pages, [0])
  t.same(await find({ search: 'horse id2' }), [3])
})

void test('indexes serve one word beside all other conditions, and two beside none', async (t) => {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  const rows = Array.from({ length: 40 }, (_, i) => ({
    id: i + 1,
    is_new: 1,
    n: 1,
    ts: new Date(Date.now() - MINUTE_MS + i).toISOString(),
    received_at: new Date().toISOString(),
    source: 'web',
    variables: `word${i} word`,
    constant_text: `a ${DELIMITER} z`,
    trace_id: 'ab12',
  }))
  await store.insertRows('landing', rows)
  await store.command('OPTIMIZE TABLE events FINAL')
  const isCombined = async (filter: Asked, places: number): Promise<boolean> => {
    const isFound = (filter.search ?? '').split(' ').map(() => 1)
    const texts = [{ text: 'none', words: isFound }]
    const found = { constantTexts: places > 0 ? texts : [], hosts: places > 1 ? texts : [] }
    const conditions = toConditions(filterOf(filter), { found, endMs: 0 })
    // The most expressions that a page can have.
    const sql = `EXPLAIN indexes = 1 SELECT id FROM events
      WHERE ts >= now() - 86400 AND ts < now() + 86400 AND received_at >= now() - 86400
        AND if(ts < now() + 80000 OR (ts = now() + 80000 AND id < 9), 1, 0) AND toStartOfHour(ts) != toDateTime(1)
        ${conditions.map((condition) => `AND ${condition.sql}`).join('\n')}`
    const params: Record<string, unknown> = Object.assign(
      {},
      ...conditions.map((one) => one.params),
    )
    const lines = await store.query<typeof params, { readonly explain: string }>(
      { name: 'explain', sql },
      params,
    )
    return lines.some(({ explain }) => explain.includes('Combined skip indexes'))
  }
  const all: Asked = {
    severity: ['INFO'],
    priority: ['P4'],
    type: ['log'],
    environment: ['x'],
    source: ['web'],
    template_id: ['0000000000000001'],
  }
  t.ok(await isCombined({ search: 'quetzal' }, 2))
  t.ok(await isCombined({ ...all, search: 'quetzal' }, 2))
  t.ok(await isCombined({ ...all, search: 'quetzal coatl' }, 2))
  t.ok(await isCombined({ ...all, search: 'quetzal coatl' }, 0))
  t.ok(await isCombined({ search: 'quetzal coatl' }, 1))
  t.ok(await isCombined({ search: 'quetzal coatl and more words' }, 2))
  t.ok(await isCombined({ search: '"the quetzal coatl of"' }, 1))
})

void test('a search that thousands of sources, or long texts beyond ASCII, can match', async (t) => {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  const now = Date.now()
  const constantTexts = 500
  await store.insertRows(
    'landing',
    Array.from({ length: constantTexts }, (_, i) => ({
      id: i + 1,
      is_new: 1,
      n: 1,
      received_at: new Date(now).toISOString(),
      ts: new Date(now - i).toISOString(),
      source: `source ${i}`,
      type: 'log',
      severity: 'INFO',
      priority: 'P4',
      constant_text: `order ${String.fromCharCode(0x4e00 + i).repeat(99)} ${DELIMITER}`,
      variables: '7',
      host: 'h',
    })),
  )
  const events = createEvents(store)
  const found = async (filter: Asked): Promise<readonly number[]> => {
    const query = { fromMs: now - DAY_MS, toMs: null, after: null, limit: 5 }
    const { events: page } = await events.page({ ...query, filter: filterOf(filter) })
    return page.map(({ id }) => id)
  }
  t.same(await found({ search: 'order' }), [1, 2, 3, 4, 5])
  const sources = Array.from({ length: 5_000 }, (_, i) => `source ${i + 490} ${'x'.repeat(99)}`)
  sources.push('source 498', 'source 499')
  for (const filter of [{}, { search: 'order' }, { search: 'order', severity: ['INFO'] }])
    t.same(await found({ ...filter, source: sources }), [499, 500], JSON.stringify(filter))
})
