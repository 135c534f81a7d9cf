import { test } from 'tap'

import { createInProcessState } from '../../../../src/coordination/memory-state.js'
import { HeaderBag, Request } from '../../../../src/http/request.js'
import { createRouter } from '../../../../src/http/router.js'
import type { BodyResult } from '../../../../src/ingest/block.js'
import { createListeners } from '../../../../src/ingest/listener.js'
import { createOnce } from '../../../../src/ingest/once.js'
import {
  ingestRoute,
  type IngestServices,
  namedSource,
} from '../../../../src/ingest/protocols/ingest-route.js'
import { datadog } from '../../../../src/ingest/protocols/datadog.js'
import { findKey } from '../../../../src/ingest/protocols/key.js'
import { PROTOCOLS } from '../../../../src/ingest/protocols/table.js'
import type { SenderKey, Submission } from '../../../../src/ingest/submission.js'
import { AppError } from '../../../../src/model/errors.js'

const KEY = 'ik_the-key-of-this-test'
const SENDER: SenderKey = { id: 'k1', sources: null, autoRegister: true, defaultSource: null }
const log = { info() {}, warn() {}, error() {} }

function toRequest(
  headers: Readonly<Record<string, string>>,
  { queryText = '', params = {} }: { queryText?: string; params?: Record<string, string> } = {},
): Request {
  const bag = new HeaderBag()
  for (const [name, value] of Object.entries(headers)) bag.add(name, value)
  return new Request({
    method: 'POST',
    path: '/x',
    queryText,
    headers: bag,
    params,
    ip: () => '127.0.0.1',
    requestId: 'r',
    log,
    signal: () => new AbortController().signal,
    isOver: () => false,
  })
}

const RESULT: BodyResult = {
  received: 1,
  accepted: 1,
  rejected: 0,
  dropped: 0,
  bytes: 2,
  ms: 0,
  errors: [],
  sources: ['a'],
  ids: [],
  span: null,
  refusal: null,
  reply: null,
}

const verify = (word: string): SenderKey | null => (word === KEY ? SENDER : null)

function services(submit: IngestServices['submit']): IngestServices {
  const state = createInProcessState({ onError: () => undefined })
  return {
    verifyKey: verify,
    hasKey: (id) => id === SENDER.id,
    hasRoom: () => true,
    submit,
    once: createOnce(state, state),
    onWrongKey: () => undefined,
    version: '1',
    isReady: () => true,
  }
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')

void test('one ingest key is taken wherever clients send one', async (t) => {
  const takes = (headers: Record<string, string>, options = {}): void =>
    void t.equal(findKey(toRequest(headers, options), verify).word, KEY, JSON.stringify(headers))
  for (const scheme of ['Bearer', 'bearer', 'Splunk', 'ApiKey', 'Token'])
    takes({ authorization: `${scheme} ${KEY}` })
  takes({ authorization: `Basic ${base64(`any:${KEY}`)}` })
  takes({ authorization: `Basic ${base64(`${KEY}:`)}` })
  takes({ authorization: `Basic ${base64(`${KEY}:x`)}` })
  takes({ authorization: `ApiKey ${base64(`an id:${KEY}`)}` })
  for (const name of ['x-api-key', 'dd-api-key', 'x-license-key', 'api-key', 'x-scope-orgid'])
    takes({ [name]: KEY })
  takes({}, { queryText: `a=b&token=${KEY}` })
  takes({ 'x-scope-orgid': 'tenant' }, { params: { key: KEY } })
  t.same(findKey(toRequest({ authorization: `Digest ${KEY}` }), verify), { word: '', key: null })
  t.same(findKey(toRequest({}), verify), { word: '', key: null })
})

void test('what is no key hides none in another place', async (t) => {
  const places: readonly (readonly [Record<string, string>, object?])[] = [
    [{ 'dd-api-key': KEY }],
    [{ 'x-license-key': KEY }],
    [{ 'x-scope-orgid': KEY }],
    [{}, { queryText: `token=${KEY}` }],
    [{}, { queryText: `token=other&api_key=${KEY}` }],
    [{}, { params: { key: KEY } }],
  ]
  const others: readonly Record<string, string>[] = [
    ...['Bearer other', 'Basic !', `Basic ${base64('user:password')}`, 'Digest a="b"', 'x', ''].map(
      (authorization) => ({ authorization }),
    ),
    { 'x-api-key': 'other' },
    { 'x-api-key': '' },
  ]
  for (const [headers, options] of places)
    for (const other of others) {
      const { key } = findKey(toRequest({ ...other, ...headers }, options), verify)
      t.equal(key, SENDER, JSON.stringify([other, headers, options]))
    }
  const { word, key } = findKey(toRequest({ 'x-api-key': 'a', 'api-key': 'b' }), verify)
  t.same({ word, key }, { word: 'a', key: null })
})

void test('an empty name of a source in the query leaves that of the header', async (t) => {
  const source = (queryText: string) =>
    namedSource(toRequest({ 'x-source': 'header' }, { queryText }))
  t.equal(source('source=query'), 'query')
  t.equal(source('source='), 'header')
  t.equal(source('a=b'), 'header')
})

void test('a request with an Idempotency-Key is stored once', async (t) => {
  const seen: (boolean | undefined)[] = []
  let failures = 1
  const route = ingestRoute(
    { id: 'x', path: '/x', protocol: 'x', format: 'ingest', toReply: () => ({ status: 202 }) },
    services((submission) => {
      seen.push(submission.isRepeat)
      return failures-- > 0
        ? Promise.reject(new AppError('dependency_unavailable', 'spool'))
        : Promise.resolve(RESULT)
    }),
  )
  const send = async (id: string) => {
    const request = toRequest({ authorization: `Bearer ${KEY}`, 'idempotency-key': id })
    const admission = await route.admit(request)
    if (admission.kind !== 'admitted') throw new Error(admission.kind)
    return await admission.handle(request)
  }
  await t.rejects(send('one'), { code: 'dependency_unavailable' })
  t.match(await send('one'), { status: 202 }, 'after a failure it is tried again')
  t.match(await send('one'), { status: 202 }, 'a copy gets the same reply')
  t.match(await send('two'), { status: 202 })
  t.same(seen, [undefined, undefined, true, undefined])
})

void test('small requests for which there is no room are read to answer each record', async (t) => {
  const state = createInProcessState({ onError: () => undefined })
  const route = ingestRoute(
    {
      id: 'x',
      path: '/x',
      protocol: 'x',
      format: 'ingest',
      patienceMs: 0,
      toReply: () => ({ status: 202 }),
      toBusyReply: () => ({ status: 200 }),
    },
    {
      ...services(() => Promise.resolve(RESULT)),
      once: createOnce(state, state),
      hasRoom: () => false,
    },
  )
  const admit = async (bytes: number) =>
    await route.admit(
      toRequest({ authorization: `Bearer ${KEY}`, 'content-length': String(bytes) }),
    )
  await t.rejects(admit(1024 * 1024 + 1), { code: 'overloaded' }, 'a large one is not read')
  const admitted = []
  for (let i = 0; i < 8; i++) admitted.push(await admit(100))
  await t.rejects(admit(100), { code: 'overloaded' }, 'nor more than a few')
  const [first] = admitted
  if (first?.kind !== 'admitted') throw new Error('refused')
  t.match(await first.handle(toRequest({})), { status: 200 })
  await t.resolves(admit(100), 'the next one may come')
})

/** Sends a request to the paths of all protocols. */
async function ask(
  [method, path]: readonly [method: string, path: string],
  head: Parameters<typeof toRequest>,
  result: BodyResult = RESULT,
) {
  const all = services(() => Promise.resolve(result))
  const found = createRouter(PROTOCOLS.flatMap(({ routes }) => routes?.(all) ?? [])).match(
    method,
    path,
  )
  if (found.kind !== 'route') throw new Error(found.kind)
  const request = toRequest(head[0], { params: found.params, ...head[1] })
  request.body = Buffer.from('{}')
  const admission = await found.route.admit(request)
  if (admission.kind !== 'admitted') throw new Error(admission.kind)
  return { id: found.route.id, reply: await admission.handle(request) }
}

void test('a bulk request may name its index and type in the path', async (t) => {
  const head = { authorization: `Bearer ${KEY}` }
  for (const path of ['/_bulk', '/shop/_bulk', '/shop/_doc/_bulk'])
    for (const method of ['POST', 'PUT'])
      t.match(await ask([method, path], [head]), { id: 'elasticsearch_bulk' }, path)
  t.match(await ask(['PUT', '/shop/_doc/1'], [head]), { id: 'elasticsearch_document' })
})

void test("Datadog's agent asks for its key wherever it sends it", async (t) => {
  const valid = async (...head: Parameters<typeof toRequest>) =>
    (await ask(['GET', '/api/v1/validate'], head)).reply
  t.match(await valid({ 'dd-api-key': KEY }), { status: 200, json: { valid: true } })
  t.match(await valid({}, { queryText: `api_key=${KEY}` }), { status: 200, json: { valid: true } })
  t.match(await valid({ 'dd-api-key': 'other' }), { status: 403, json: { valid: false } })
})

void test('the agent of Datadog gets no status after which it sends again what can not be stored', async (t) => {
  const toErrorReply = datadog
    .routes?.(services(() => Promise.resolve(RESULT)))
    .find(({ path }) => path === '/api/v2/logs')?.toErrorReply
  for (const [code, status] of [
    ['unsupported_media_type', 400],
    ['validation_error', 400],
    ['bad_request', 400],
    ['body_too_large', 413],
    ['source_not_allowed', 403],
    ['unauthorized', 401],
    ['overloaded', 503],
    ['dependency_unavailable', 503],
  ] as const)
    t.equal(toErrorReply?.(new AppError(code, 'x'), toRequest({})).status, status, code)
})

void test('Splunk counts events from 0, whichever line they are on', async (t) => {
  const error = { line: 3, code: 'invalid_json', message: 'no JSON' } as const
  const none: BodyResult = { ...RESULT, accepted: 0, rejected: 1, errors: [error] }
  const { reply } = await ask(['POST', '/services/collector'], [{ 'api-key': KEY }], none)
  t.match(reply, { status: 400, json: { code: 6, 'invalid-event-number': 0 } })
})

void test('listeners write with the rights of a key, and each network has a share', async (t) => {
  const sent: Submission[] = []
  const full = 'listener 192.0.2.9'
  const pipeline = {
    hasRoom: (_bytes: number, owner: string) => owner !== full,
    submit: async (submission: Submission) => {
      sent.push(submission)
      return RESULT
    },
  }
  const state = createInProcessState({ onError: () => undefined })
  const once = createOnce(state, state)
  let key: SenderKey | null = null
  const listeners = createListeners({ ...pipeline, key: () => key, once })
  const body = { protocol: 'x', format: 'x/lines', bytes: Buffer.from('a') } as const
  const network = '192.0.2.1'
  t.notOk(listeners.hasRoom(1, network))
  await t.rejects(listeners.submit(body, network), { code: 'unauthorized' })
  key = { ...SENDER, defaultSource: 'daemons', autoRegister: false }
  t.ok(listeners.hasRoom(1, network))
  t.notOk(listeners.hasRoom(1, '192.0.2.9'))
  await t.rejects(listeners.submit(body, '192.0.2.9'), { code: 'overloaded' })
  await listeners.submit({ ...body, onceId: 'chunk' }, network)
  await listeners.submit({ ...body, onceId: 'chunk' }, network)
  t.match(sent, [
    { keyId: 'k1', defaultSource: 'daemons', register: null, format: 'x/lines' },
    { isRepeat: true },
  ])
  t.same([...new Set(sent.map(({ owner }) => owner))], [`listener ${network}`])
})
