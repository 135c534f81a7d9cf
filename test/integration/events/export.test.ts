/**
 * Exported lines are, byte for byte, what ClickHouse makes of the whole messages and tags. A client that is slow or leaves costs
 * nothing lasting.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import * as fc from 'fast-check'
import { t as suite, test } from 'tap'
import type { Store } from '../../../src/clickhouse/client.js'
import { startStream } from '../../../src/api/route.js'
import { createExportSlots } from '../../../src/api/export-slots.js'
import { logExportRoutes } from '../../../src/api/routes/log-export.js'
import { attributeText } from '../../../src/events/attribute-condition.js'
import { bound, type Bind } from '../../../src/events/bind.js'
import { createEvents } from '../../../src/events/events.js'
import { EVENT_FIELDS, toExportLines } from '../../../src/events/export-columns.js'
import { EXPORT_FORMATS, type ExportFormat } from '../../../src/events/export-lines.js'
import { mapped } from '../../../src/events/row-condition.js'
import { AppError } from '../../../src/model/errors.js'
import { USERS, startApi } from '../../support/api.js'
import { createTestDatabase, startTestServer } from '../../support/clickhouse.js'
import { filterOf } from '../../support/event-filter.js'
import { applySchema } from '../../support/landing.js'
import { eventually } from '../../support/live-service.js'
import { FROM_MS, firstRow, makeEvents } from '../../support/event-data.js'
import { NAMES } from '../../support/query-data.js'

const SEED = Number(process.env['SEED'] ?? 5)
const EVENTS = 300
const ATTRIBUTES = ['region', 'user.id', 'wé"ird', 'text', 'correction_reason', 'none']

const server = await startTestServer()
suite.teardown(() => server.stop())

const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.string({
    unit: fc.constantFrom(
      ...Array.from(
        ' \t\r\n\f\b\u0000\u0001\u001f\u007f\u2028\u2029\u202aâ=+-@＝＋－＠"\'\\/,7.e日\u{1f600}',
      ),
    ),
    maxLength: 8,
  }),
  fc.constantFrom('-1', '+1.5', '-5e3', '-1E', '-1.', '=1', '\n', 'x'.repeat(3000)),
)

/** Repeats of every fourth event, and corrections of every ninth. */
async function fill(store: Store): Promise<void> {
  const texts = fc.sample(anyText, { seed: SEED, numRuns: EVENTS })
  const rows: object[] = []
  makeEvents(SEED, EVENTS).forEach((made, i) => {
    const text = texts[i] ?? ''
    const own = i % 3 === 0 ? made : { ...made, message: text, literals: [''], traceId: text }
    const tags = i % 5 === 0 ? { text, [text]: [text], n: i } : own.tags
    const row = firstRow({ ...own, tags: i % 10 === 0 ? { text, n: i } : tags }, i + 1)
    rows.push(row)
    const ts = new Date(made.tsMs + 3_000).toISOString()
    if (i % 4 === 0) rows.push({ ...row, is_new: 0, n: 2, ts })
  })
  for (let from = 0; from < rows.length; from += 250)
    await store.insertRows('landing', rows.slice(from, from + 250))
  const events = createEvents(store)
  for (let id = 9; id <= EVENTS; id += 90) {
    const event = await events.get(id)
    if (event === null) throw new Error(`bug: ${id} is not stored`)
    const reason = `why "${texts[id]}"`
    await events.correct({ id, tsMs: event.timestampMs, priority: 'P1', reason })
  }
}

const time = (column: string): string => `formatDateTime(${column}, '%Y-%m-%dT%H:%i:%S.%fZ')`

/** How a value is written, and its SQL. */
type Kind = 'bare' | 'word' | 'text' | 'json'

const SQL: Readonly<Record<(typeof EVENT_FIELDS)[number], readonly [Kind, string]>> = {
  id: ['bare', 'toString(events.id)'],
  timestamp: ['word', time('ts')],
  source: ['text', 'source'],
  type: ['word', 'toString(type)'],
  severity: ['word', 'toString(severity)'],
  priority: ['word', 'toString(priority)'],
  message: ['text', 'message'],
  template_id: ['word', ''],
  host: ['text', 'host'],
  tags: [
    'json',
    `multiIf(empty(correction_reason), if(empty(tags), '{}', tags), tags IN ('', '{}'), ` +
      `concat('{"correction_reason":', toJSONString(correction_reason), '}'), ` +
      `concat(substring(tags, 1, length(tags) - 1), ',"correction_reason":', toJSONString(correction_reason), '}'))`,
  ],
  occurrence_count: ['bare', 'toString(n + repeats)'],
  trace_id: ['text', 'trace_id'],
  environment: ['text', 'environment'],
  last_seen: ['word', time('greatest(ts, last)')],
}

const FORMULA = String.raw`'^[\\s[:cntrl:]]*[=+\\-@\\x{FF1D}\\x{FF0B}\\x{FF0D}\\x{FF20}]|^[[:cntrl:]]'`
const PLAIN_NUMBER = String.raw`'^[+\\-]?[0-9]+(\\.[0-9]+)?([eE][+\\-]?[0-9]+)?$'`

function cell(format: ExportFormat, kind: Kind, sql: string): string {
  if (kind === 'bare') return sql
  if (kind === 'word') return format === 'ndjson' ? `concat('"', ${sql}, '"')` : sql
  if (format === 'ndjson') return kind === 'json' ? sql : `ifNull(toJSONString(${sql}), 'null')`
  const text = `ifNull(${sql}, '')`
  if (format === 'txt') {
    const escaped = `replaceAll(replaceAll(${text}, '\\n', '\\\\n'), '\\r', '\\\\r')`
    return `if(empty(${text}), '-', replaceRegexpAll(${escaped}, '[[:cntrl:]]', ' '))`
  }
  const isFormula = `match(${text}, ${FORMULA}) AND NOT match(${text}, ${PLAIN_NUMBER})`
  return `concat('"', replaceAll(if(${isFormula}, concat('\\'', ${text}), ${text}), '"', '""'), '"')`
}

function lineOf(format: ExportFormat, names: readonly string[], bind: Bind): string {
  const cells = names.map((name, i) => {
    const isField = EVENT_FIELDS.some((field) => field === name)
    const [kind, stored] = isField
      ? SQL[name as (typeof EVENT_FIELDS)[number]]
      : (['text', attributeText(name, bind)] as const)
    const template = `leftPad(lower(hex(${mapped('template_id', NAMES.redirects, bind)})), 16, '0')`
    const own = cell(format, kind, name === 'template_id' ? template : stored)
    const key = `${i === 0 ? '{' : ','}${JSON.stringify(name)}:`
    if (format === 'ndjson') return `${bind('String', key)}, ${own}`
    return i === 0 ? own : `'${format === 'csv' ? ',' : ' '}', ${own}`
  })
  const end = { ndjson: '}\\n', csv: '\\r\\n', txt: '\\n' }[format]
  return `concat(${cells.join(', ')}, '${end}')`
}

/** The lines in the order of the export. */
async function expected(
  store: Store,
  format: ExportFormat,
  names: readonly string[],
): Promise<readonly string[]> {
  const { sql, params } = bound('line', (bind) => lineOf(format, names, bind))
  const repeats =
    'SELECT id AS repeated_id, sum(n) AS repeats, max(last_ts) AS last FROM event_occurrences GROUP BY id'
  const asked = {
    name: 'lines',
    sql: `SELECT ${sql} AS line FROM events LEFT JOIN (${repeats}) AS r ON r.repeated_id = events.id ORDER BY ts, events.id`,
  }
  const settings = {
    output_format_json_escape_forward_slashes: 0 as const,
    formatdatetime_f_prints_scale_number_of_digits: 1 as const,
  }
  const rows = await store.query<Record<string, unknown>, { line: string }>(asked, params, {
    settings,
  })
  return rows.map(({ line }) => line)
}

void test('lines are made of stored columns as ClickHouse makes them', async (t) => {
  t.comment(`SEED=${SEED}`)
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  await fill(store)
  const events = createEvents(store)
  const filter = filterOf({})
  const names = [...EVENT_FIELDS, ...ATTRIBUTES]
  for (const format of EXPORT_FORMATS) {
    const lines = toExportLines(format, names, NAMES.redirects)
    const query = { filter, fromMs: FROM_MS, toMs: null, order: 'asc', after: null, lines } as const
    const { signal } = new AbortController()
    const got: Buffer[] = []
    let rows = 0
    for await (const part of events.exported(query, { ask: (work) => work(), signal })) {
      got.push(Buffer.from(part.bytes))
      rows += part.rows
    }
    const wanted = await expected(store, format, names)
    t.equal(rows, EVENTS)
    let text = Buffer.concat(got).toString()
    const at = wanted.findIndex((line) => {
      const isThere = text.startsWith(line)
      if (isThere) text = text.slice(line.length)
      return !isThere
    })
    if (at >= 0) t.equal(text.slice(0, wanted[at]?.length), wanted[at], `${format}, line ${at}`)
    t.equal(text.slice(0, 200), '', `${format} has no more`)
  }
})

void test('an outage before the first event delays an export', async (t) => {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  await applySchema(store)
  await fill(store)
  const filter = filterOf({ search: 'timeout' })
  const lines = toExportLines('ndjson', ['id'], NAMES.redirects)
  const query = { filter, fromMs: FROM_MS, toMs: null, order: 'asc', after: null, lines } as const
  const { signal } = new AbortController()
  const rowsOf = async (of: Pick<Store, 'query' | 'change' | 'queryColumns'>): Promise<number> => {
    let rows = 0
    for await (const part of createEvents(of).exported(query, { ask: (work) => work(), signal }))
      rows += part.rows
    return rows
  }
  const wanted = await rowsOf(store)
  t.ok(wanted > 0)
  const statements = new Set<string>()
  const refuseOnce = (name: string): void => {
    if (statements.has(name)) return
    statements.add(name)
    throw new AppError('dependency_unavailable', 'an outage')
  }
  const failing: Pick<Store, 'query' | 'change' | 'queryColumns'> = {
    query: async (asked, params, request) => {
      refuseOnce(asked.name)
      return await store.query(asked, params, request)
    },
    queryColumns: async (asked, params, request) => {
      refuseOnce(asked.name)
      return await store.queryColumns(asked, params, request)
    },
    change: store.change,
  }
  t.equal(await rowsOf(failing), wanted)
  const names = ['event_density', 'event_constant_texts', 'event_hosts', 'event_export']
  t.same([...statements].toSorted(), names.toSorted(), 'each was refused')
})

void test('a stream without bytes begins after a while, and then has them', async (t) => {
  let give: (bytes: Uint8Array) => void = () => undefined
  const waiting = new Promise<Uint8Array>((resolve) => (give = resolve))
  async function* source() {
    yield await waiting
  }
  const stream = await startStream(source(), 1)
  give(Buffer.from('late'))
  t.same(await stream.next(), { done: false, value: Buffer.from('late') })
  t.match(await stream.next(), { done: true })

  async function* failing(): AsyncGenerator<Uint8Array> {
    yield await sleep(20).then(() => Promise.reject(new Error('a fault')))
  }
  const broken = await startStream(failing(), 1)
  await sleep(40)
  await t.rejects(broken.next(), { message: 'a fault' })
  await t.rejects(startStream(failing()), { message: 'a fault' }, 'an earlier error is told')
})

const EXPORTS_OF_A_USER = 2
const ROWS = 3_000
const MESSAGE_BYTES = 20_000
/** Two chunks, of which the first has 1,000 rows, and what the buffers of both sockets hold. */
const MOST_BYTES = 45_000_000

/** Exports over sockets, of a store that says how much of it was read. */
async function exporting(t: Parameters<typeof startApi>[0], store: Store) {
  await applySchema(store)
  await store.command(
    `INSERT INTO landing (id, is_new, n, received_at, ts, source, type, severity, priority, template_id, variables)
    SELECT number + 1, 1, 1, now64(3), now64(3) - number, 'wide', 'log', 'INFO', 'P4', 1, repeat('x', ${MESSAGE_BYTES})
    FROM numbers(${ROWS})`,
  )
  const read = { bytes: 0, isEndless: false }
  const endless =
    'SELECT toFloat64(number) AS ts_ms, ts_ms AS event_id FROM system.numbers WHERE sipHash64(number) = 1'
  const queryColumns: Store['queryColumns'] = async (asked, params, request = {}) => {
    const blocks = await (read.isEndless
      ? store.queryColumns({ ...asked, sql: endless }, params, {
          ...request,
          settings: { max_execution_time: 0 },
        })
      : store.queryColumns(asked, params, request))
    read.bytes += blocks.reduce((sum, { bytes }) => sum + bytes.byteLength, 0)
    return blocks
  }
  const { query, change } = store
  const exportSlots = createExportSlots()
  const services = {
    events: createEvents({ query, change, queryColumns }),
    eventContext: {
      redirects: () => [],
      applications: () => [],
      templateAliases: (id: string) => [id],
    },
    exportSlots,
    isAlive: () => true,
  }
  const running = {
    name: 'running',
    sql: `SELECT count() AS n FROM system.processes WHERE position(query, 'AS event_id') > 0 AND position(query, 'processes') = 0`,
  }
  return {
    read,
    /** Begins an export on a socket that is read by hand. */
    begin: (limits: { readonly stallTimeoutMs?: number } = {}) => {
      const { port } = startApi(t, logExportRoutes, services, { limits })
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => undefined)
      const head = 'Host: x\r\nAuthorization: Bearer viewer\r\n\r\n'
      socket.write(`GET /api/logs/export?fields=id,message HTTP/1.1\r\n${head}`)
      return socket
    },
    statements: async (): Promise<number> => {
      const [row] = await store.query<Record<string, unknown>, { n: number }>(running, {})
      return Number(row?.n)
    },
    /** Whether the user may begin as many exports as ever. */
    isFree: (): boolean => {
      const ends: (() => void)[] = []
      try {
        for (let i = 0; i < EXPORTS_OF_A_USER; i++) ends.push(exportSlots.begin(USERS.viewer))
        return true
      } catch {
        return false
      } finally {
        for (const end of ends) end()
      }
    },
  }
}

void test('a client that is slow, stops reading or hangs up costs nothing lasting', async (t) => {
  const { store, drop } = await createTestDatabase(server)
  t.teardown(drop)
  const { read, begin, statements, isFree } = await exporting(t, store)
  const freed = async (): Promise<void> => {
    await eventually(async () => isFree(), Boolean)
    await eventually(statements, (n) => n === 0)
  }

  await t.test(
    'one that reads 1 kB a second gets the whole file, and a part is read at a time',
    async (t) => {
      const socket = begin()
      await once(socket, 'readable')
      for (let second = 0; second < 3; second++) {
        socket.read(1_024)
        await sleep(1_000)
      }
      t.equal(isFree(), false)
      t.ok(read.bytes < MOST_BYTES, `${read.bytes} bytes were read`)
      let end = ''
      for await (const piece of socket) {
        end = `${end.slice(-100)}${String(piece)}`
        if (end.includes('"complete"')) break
      }
      t.match(end, `{"complete":true,"rows":${ROWS}}`)
      t.ok(read.bytes > ROWS * MESSAGE_BYTES)
      await freed()
    },
  )

  await t.test('one that stops reading is disconnected', async (t) => {
    read.bytes = 0
    const socket = begin({ stallTimeoutMs: 1_000 })
    await once(socket, 'readable')
    await freed()
    t.ok(read.bytes < MOST_BYTES, `${read.bytes} bytes were read`)
    socket.destroy()
  })

  await t.test('one that hangs up ends the statement', async (t) => {
    read.isEndless = true
    const socket = begin()
    await eventually(statements, (n) => n === 1)
    t.equal(isFree(), false)
    socket.destroy()
    await freed()
  })
})
