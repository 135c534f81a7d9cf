/**
 * Every route of the OpenAPI document and of the collector, in every role, with values of its schemas mostly
 * and hostile ones now and then: no fault of the service, no way around a role, every error in the envelope.
 */
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import * as fc from 'fast-check'
import t from 'tap'
import { Random } from '../../bench/data/random.js'
import { allRoutes } from '../../src/api/routes.js'
import { ERRORS } from '../../src/model/errors.js'
import { currentKpis, openKpiSocket } from '../support/kpi-socket.js'
import { eventually, settled, startLiveService } from '../support/live-service.js'
import { INGEST_KEY } from '../support/service.js'
import { readCorpus } from './corpus.js'
import { fromSchema, hostile, HOSTILE_TEXTS, type Pool } from './from-schema.js'
import { createMutator } from './mutate.js'
import { SEED, TIMES } from './settings.js'
import { TARGETS } from './targets.js'
import { MINUTE_MS } from '../../src/model/time.js'

// oxlint-disable typescript/no-explicit-any -- the document and the replies, read as a client reads them

t.comment(`FUZZ_SEED=${SEED}`)
const ROLES = ['viewer', 'manager', 'admin', 'superadmin'] as const
type Caller = (typeof ROLES)[number] | 'anonymous'
/** requests of each operation and role by default; hashing a password, or clearing everything, takes long */
const REQUESTS = 4
const FEW: Readonly<Record<string, number>> = {
  login: 2,
  createUser: 2,
  setPassword: 2,
  clearAll: 1,
}
/** more than any deadline of the service */
const HANGS_MS = MINUTE_MS

const service = await startLiveService(t, { LOG_LEVEL: 'warn', SOURCE_CREATE_LIMIT: '100000/60' })
const document: any = (await service.call('GET /openapi.json')).body

const tokens = new Map<Caller, string>()
/** those of the test itself: they are not to be deleted or disabled */
const own = new Set<string>()
for (const role of ROLES) {
  const { id, email, access_token } = await service.newUser(role)
  own.add(id).add(email)
  tokens.set(role, access_token)
}
const me = (await service.call('GET /api/auth/me')).body
own.add(me.id).add(me.email)

interface Sent {
  readonly what: string
  readonly status: number
  readonly text: string
  readonly reply: Response
}

/** @returns null for a request that the client itself refuses to send */
async function send(what: string, url: string, init: RequestInit): Promise<Sent | null> {
  const ready = prepare(url, init)
  if (ready === null) return null
  const reply = await fetch(ready, { signal: AbortSignal.timeout(HANGS_MS), redirect: 'manual' })
  return { what, status: reply.status, text: await reply.text(), reply }
}

function prepare(url: string, init: RequestInit): Request | null {
  try {
    return new Request(url, init)
  } catch {
    return null
  }
}

/** What every reply must be. @returns what is wrong with it, null when nothing is */
function fault({ status, text, reply }: Sent): string | null {
  if (status >= 500) return `a fault of the service: ${text.slice(0, 300)}`
  if (reply.headers.get('x-request-id') === null) return 'no request id'
  if (status < 400) return null
  const { detail } = JSON.parse(text)
  const known: Readonly<Record<string, { status: number }>> = ERRORS
  if (known[detail.code]?.status !== status) return `${status} with the code ${detail.code}`
  if (typeof detail.message !== 'string' || typeof detail.details !== 'object') return 'no envelope'
  if (status === 429 && reply.headers.get('retry-after') === null) return 'no Retry-After'
  return null
}

const pool: Pool = { known: ['shop'] }

function learn(text: string): void {
  for (const match of text.matchAll(
    /"(?:id|name|template_id|next_cursor|email)":"?([^",}]{1,200})/g,
  )) {
    const [, value = ''] = match
    if (!own.has(value) && pool.known.length < 500 && !pool.known.includes(value))
      pool.known.push(value)
  }
}

const toText = (value: unknown): string => {
  if (typeof value === 'string') return value
  return value === undefined ? '' : JSON.stringify(value)
}

/** As a form is encoded; what is no Unicode is sent as its bytes would be. */
const encode = (text: string): string =>
  encodeURIComponent(Buffer.from(text, 'utf8').toString('utf8'))

interface Operation {
  readonly method: string
  readonly path: string
  readonly id: string
  readonly role: string
  readonly parameters: readonly any[]
  readonly body: any
}

const operations = Object.entries<any>(document.paths)
  .filter(([path]) => !path.startsWith('/ws/'))
  .flatMap(([path, item]) =>
    // Operations with servers of their own are the collector's.
    Object.entries<any>(item)
      .filter(([, operation]) => operation.servers === undefined)
      .map(([method, operation]): Operation => ({
        method: method.toUpperCase(),
        path,
        id: operation.operationId,
        role: operation['x-role'],
        parameters: operation.parameters ?? [],
        body: operation.requestBody?.content ?? null,
      })),
  )

interface Attempt {
  readonly path: string
  readonly query: string
  readonly body: string | FormData | Uint8Array<ArrayBuffer> | null
  readonly headers: Record<string, string>
}

const junkQuery = fc.oneof(
  { weight: 6, arbitrary: fc.constant('') },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '&limit=1&limit=2',
      '&__proto__=1',
      '&cursor=%ff',
      '&=&&&',
      '&%zz=%zz',
      `&x=${'y'.repeat(9_000)}`,
    ),
  },
)

/** Path, query and body of one request. */
function attempts({ path, parameters, body }: Operation): fc.Arbitrary<Attempt> {
  const valueOf = (schema: any) => fromSchema(schema, document.components, pool).map(toText)
  const inPath = parameters.filter((parameter) => parameter.in === 'path')
  const inQuery = parameters.filter((parameter) => parameter.in === 'query')
  const paths = fc
    .record(Object.fromEntries(inPath.map(({ name, schema }) => [name, valueOf(schema)])))
    .map((values: Record<string, string>) =>
      path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encode(values[name] ?? '')),
    )
  const queries = fc
    .record(
      Object.fromEntries(
        inQuery.map(({ name, schema }) => [
          name,
          schema?.type === 'array' ? valueOf(schema.items) : valueOf(schema),
        ]),
      ),
      { requiredKeys: [] },
    )
    .map((values) =>
      Object.entries<any>(values)
        .map(([name, value]) => `${name}=${encode(String(value ?? ''))}`)
        .join('&'),
    )
  return fc
    .tuple(paths, queries, junkQuery, bodies(body))
    .map(([filled, query, junk, rest]) => ({ path: filled, query: query + junk, ...rest }))
}

type Body = Pick<Attempt, 'body' | 'headers'>

function bodies(content: any): fc.Arbitrary<Body> {
  if (content === null)
    return fc.constantFrom<Body>({ body: null, headers: {} }, { body: '{}', headers: {} })
  if (content['multipart/form-data'] !== undefined) return forms
  const schema = content['application/json']?.schema ?? {}
  const json = fromSchema(schema, document.components, pool).map(
    (value) => JSON.stringify(value) ?? '',
  )
  const type = fc.constantFrom(
    ...Array.from({ length: 8 }, () => 'application/json'),
    'application/json; charset=utf-16',
    'text/plain',
    'application/x-www-form-urlencoded',
    '',
  )
  const text = fc.oneof(
    { weight: 10, arbitrary: json },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        '',
        '{',
        '[]',
        'null',
        '['.repeat(5_000),
        '{"a":1,"a":2}',
        '\ufeff{}',
        '{"__proto__":{"role":"admin"}}',
      ),
    },
    { weight: 1, arbitrary: hostile.map((value) => JSON.stringify(value) ?? '') },
  )
  return fc.tuple(text, type).map(([body, contentType]) => ({
    body,
    headers: contentType === '' ? {} : { 'content-type': contentType },
  }))
}

const files = ['csv', 'json', 'txt'].flatMap((type) => [
  ...readCorpus(`upload-${type}`),
  ...TARGETS.filter(({ name }) => name === `upload-${type}`).flatMap(({ seeds }) =>
    seeds.map((seed) => Buffer.from(seed)),
  ),
])
const forms = fc
  .record({
    file: fc.nat().map((at) => files[at % files.length] ?? Buffer.alloc(0)),
    type: fc.constantFrom('csv', 'json', 'txt', 'exe', ''),
    source: fc.oneof(
      fc.constantFrom('fuzz-upload', ...HOSTILE_TEXTS.slice(0, 12)),
      fc.string({ maxLength: 130 }),
    ),
    isBroken: fc.nat(9).map((n) => n === 0),
  })
  .map(({ file, type, source, isBroken }): Body => {
    if (isBroken)
      return {
        body: new Uint8Array(file),
        headers: { 'content-type': 'multipart/form-data; boundary=XyZ' },
      }
    const form = new FormData()
    form.set('file', new Blob([new Uint8Array(file)]), 'a.txt')
    form.set('file_type', type)
    form.set('source_name', source)
    return { body: form, headers: {} }
  })

const isEnough = (caller: Caller, role: string): boolean =>
  role === 'public' ||
  (caller !== 'anonymous' && ROLES.indexOf(caller) >= ROLES.findIndex((known) => known === role))

const junkHeaders = fc.constantFrom<Record<string, string>>(
  {},
  {},
  {},
  { cookie: `ACCESS_TOKEN=x; ${'a=b; '.repeat(300)}` },
  { origin: 'https://evil.example', 'x-forwarded-for': '1.2.3.4, \t, ::1' },
  { accept: 'text/html', 'x-http-method-override': 'DELETE', 'if-none-match': '*' },
  { range: 'bytes=0-1', 'content-encoding': 'gzip' },
)

t.test('the routes of the collector take whatever comes', { timeout: 0 }, async (t) => {
  const random = new Random(SEED)
  const seeds = TARGETS.filter(({ name }) => name === 'ndjson' || name === 'webhook')
  const wellFormed = seeds.flatMap((target) => target.seeds.map((seed) => Buffer.from(seed)))
  const inputs = [...wellFormed, ...seeds.flatMap(({ name }) => readCorpus(name))]
  const mutate = createMutator([])
  const counts = { received: 0, accepted: 0, rejected: 0, dropped: 0 }
  const codings = [
    { name: '', encode: (bytes: Buffer) => bytes },
    { name: 'gzip', encode: gzipSync },
    { name: 'deflate', encode: deflateSync },
    { name: 'br', encode: brotliCompressSync },
    { name: 'gzip', encode: (bytes: Buffer) => bytes },
    { name: 'zstd', encode: (bytes: Buffer) => bytes },
    { name: 'rot13', encode: (bytes: Buffer) => bytes },
  ]
  for (let i = 0; i < 400 * TIMES; i++) {
    const parent = random.pick(random.chance(0.6) ? wellFormed : inputs)
    const input = random.chance(0.8) ? mutate(parent, inputs, random) : parent
    const coding = random.chance(0.7) ? codings[0] : random.pick(codings)
    const body = new Uint8Array(coding?.encode(input) ?? input)
    const path = random.chance(0.9) ? '/ingest' : '/webhooks/scm'
    const key = random.chance(0.95) ? INGEST_KEY : random.pick(HOSTILE_TEXTS)
    const headers = {
      authorization: `Bearer ${key}`,
      'x-scm-token': '0'.repeat(64),
      ...(coding === undefined || coding.name === '' ? {} : { 'content-encoding': coding.name }),
    }
    const what = `${path} ${coding?.name} ${JSON.stringify(input.toString('latin1')).slice(0, 2000)}`
    const sent = await send(what, service.collector + path, { method: 'POST', headers, body })
    if (sent === null) continue
    const wrong = fault(sent)
    if (wrong !== null) return t.fail(wrong, { what, seed: SEED })
    if (sent.status !== 202) continue
    const { received, accepted, rejected, dropped } = JSON.parse(sent.text)
    if (received !== accepted + rejected + dropped)
      return t.fail('records are lost', { what, seed: SEED })
    counts.received += received
    counts.accepted += accepted
    counts.rejected += rejected
  }
  t.comment(JSON.stringify(counts))
  t.ok(counts.accepted > 0 && counts.rejected > 0, 'both were reached')
  await settled(service)
  const kpis = await currentKpis(service)
  t.equal(kpis.total_occurrences, counts.accepted, 'what was accepted is what is counted')
  return t.end()
})

t.test('dead letters of every kind are sent again, and none is lost', { timeout: 0 }, async (t) => {
  const before = await currentKpis(service)
  const listed = (await service.call('GET /api/monitoring/dead-letters?limit=200')).body.items
  t.ok(listed.length > 10, `${listed.length} and more`)
  const sum = { replayed: 0, failed: 0, skipped: 0 }
  for (let cursor: string | null = ''; cursor !== null;) {
    const json = cursor === '' ? {} : { cursor }
    const reply = await service.call('POST /api/monitoring/dead-letters/replay', { json })
    if (reply.status !== 200) throw new Error(`seed ${SEED}: ${reply.status} ${reply.text}`)
    sum.replayed += reply.body.replayed
    sum.failed += reply.body.failed
    sum.skipped += reply.body.skipped
    cursor = reply.body.has_more ? reply.body.next_cursor : null
  }
  t.comment(JSON.stringify(sum))
  t.ok(sum.failed > 0, 'what is broken is refused again')
  await settled(service)
  const after = await currentKpis(service)
  t.equal(after.total_occurrences, before.total_occurrences + sum.replayed)
})

t.test('a WebSocket takes whatever comes', { timeout: 0 }, async (t) => {
  const random = new Random(SEED)
  const texts = [...HOSTILE_TEXTS, 'ping', 'pong', 'pingping', '{"type":"subscribe"}'].map((text) =>
    Buffer.from(text),
  )
  const mutate = createMutator(['ping', 'pong', '{"type":', 'kpis'])
  const ends = new Map<number, number>()
  for (let i = 0; i < 40 * TIMES; i++) {
    const peer = await openKpiSocket(service, {
      headers: { authorization: `Bearer ${tokens.get('viewer')}` },
    })
    for (let sent = 0; sent < 6 && peer.closed() === null; sent++) {
      const text = mutate(random.pick(texts), texts, random)
      const isWhole = random.chance(0.8)
      const binary = random.chance(0.1)
      if (isWhole) peer.socket.send(random.chance(0.7) ? text.toString('utf8') : text, { binary })
      else {
        // in pieces, with a ping of the protocol in between
        peer.socket.send(text.subarray(0, 5), { fin: false, binary })
        if (random.chance(0.5)) peer.socket.ping(text.subarray(0, 100))
        peer.socket.send(text.subarray(5), { fin: true })
      }
    }
    // either it was turned away for what it sent, or it is served as before
    const pongs = () => peer.texts.filter((text) => text === 'pong').length
    const had = pongs()
    peer.socket.send('ping', () => undefined)
    await eventually(
      async () => peer.closed() !== null || pongs() > had,
      (isAnswered) => isAnswered,
    )
    const code = peer.closed()?.code ?? 0
    ends.set(code, (ends.get(code) ?? 0) + 1)
    if (![0, 1003, 1006, 1007, 1009].includes(code)) t.fail(`closed with ${code}`, { seed: SEED })
    peer.end()
  }
  t.comment(JSON.stringify(Object.fromEntries(ends)))
  t.ok((ends.get(0) ?? 0) > 0 && ends.size > 1, 'some are served and some are not')
})

t.test('every route of the table is tried', async (t) => {
  t.same(operations.map(({ id }) => id).toSorted(), allRoutes.map(({ id }) => id).toSorted())
})

t.test('every route of the API takes whatever comes, in every role', { timeout: 0 }, async (t) => {
  const seen = new Map<number, number>()
  let sentCount = 0
  const callers: readonly Caller[] = ['superadmin', 'admin', 'manager', 'viewer', 'anonymous']
  // lists first, so that what they show can be asked for
  const ordered = operations.toSorted(
    (a, b) => Number(a.method !== 'GET') - Number(b.method !== 'GET'),
  )
  for (let round = 0; round < 2; round++) {
    for (const operation of ordered) {
      const times = Math.ceil(((FEW[operation.id] ?? REQUESTS) * TIMES) / 2)
      for (const caller of callers) {
        const salt = operations.indexOf(operation) * 10 + callers.indexOf(caller) + round * 10_000
        const samples = fc.sample(fc.tuple(attempts(operation), junkHeaders), {
          numRuns: times,
          seed: SEED * 100_003 + salt,
        })
        for (const [attempt, junk] of samples) {
          // A log-out would end the caller's session.
          const token = operation.id === 'logout' ? undefined : tokens.get(caller)
          const headers = {
            ...junk,
            ...attempt.headers,
            ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          }
          const { method, id, role } = operation
          const query = attempt.query === '' ? '' : `?${attempt.query}`
          const shown =
            typeof attempt.body === 'string' ? attempt.body.slice(0, 1000) : typeof attempt.body
          const what = `${caller}: ${method} ${attempt.path}${query.slice(0, 500)} ${shown}`
          const body = method === 'GET' ? null : attempt.body
          const sent = await send(what, service.api + attempt.path + query, {
            method,
            headers,
            ...(body === null ? {} : { body }),
          })
          if (sent === null) continue
          sentCount++
          seen.set(sent.status, (seen.get(sent.status) ?? 0) + 1)
          const wrong = fault(sent)
          if (wrong !== null) return t.fail(wrong, { id, what, seed: SEED })
          // paths that lead elsewhere, or nowhere, aside
          const isElsewhere = [400, 404, 405, 431].includes(sent.status)
          if (!isEnough(caller, role) && !isElsewhere && sent.status !== 401 && sent.status !== 403)
            return t.fail(`${caller} was let in: ${sent.status}`, { id, what, seed: SEED })
          learn(sent.text)
        }
      }
    }
  }
  t.comment(
    `${sentCount} requests: ${JSON.stringify(Object.fromEntries(seen))}; ${pool.known.length} known`,
  )
  t.ok((seen.get(200) ?? 0) > sentCount / 20, 'many were good ones')
  return t.end()
})

t.test('the service is well after all of it', async (t) => {
  t.equal((await service.call('GET /api/monitoring/health')).body.status, 'ok')
  const lines = service
    .log()
    .split('\n')
    .filter((line) => line !== '')
  const grave = lines.filter((line) => Number(JSON.parse(line).level) >= 50)
  t.same(grave, [], 'nothing unexpected was logged')
  const metrics = (await service.call('GET /metrics')).text
  t.match(metrics, /^log_engine_pipeline_bytes 0$/m, 'no body is held')
  const resident = Number(/^process_resident_memory_bytes (\d+)/m.exec(metrics)?.[1])
  t.ok(resident < 700_000_000, `${resident} bytes`)
})
