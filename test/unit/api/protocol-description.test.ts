import { test } from 'tap'

import { describeApi } from '../../../src/api/description.js'
import { toErrorReply as toOwnReply } from '../../../src/http/reply.js'
import { HeaderBag, Request } from '../../../src/http/request.js'
import { INGEST_BYTES } from '../../../src/ingest/block.js'
import { AppError } from '../../../src/model/errors.js'
import { COLLECTOR_ROUTES } from '../../support/collector-routes.js'

/** The routes of bodies of records. */
const routes = COLLECTOR_ROUTES.filter(({ bodyBytes }) => bodyBytes === INGEST_BYTES)

/** The same path is served under a prefix of any name, or of the protocol's. */
const withoutPrefix = (path: string): string =>
  path.replace(/^\/(?:\{prefix\}|elasticsearch|opensearch)(?=\/)/, '')

interface Operation {
  readonly tags: readonly string[]
  readonly responses: Readonly<Record<string, { readonly description: string }>>
}

const { paths } = JSON.parse(JSON.stringify(describeApi('0'))) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

void test('OpenAPI has exactly the paths that the protocols take', async (t) => {
  const described = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { tags }]) => tags.includes('collector') && path !== '/webhooks/scm')
      .map(([method]) => `${method.toUpperCase()} ${path}`),
  )
  const taken = routes.map(({ method, path }) => `${method} ${withoutPrefix(path)}`)
  t.ok(taken.length > 50, `${taken.length} routes`)
  t.same(described.toSorted(), [...new Set(taken)].toSorted())
})

const CODES = [
  'bad_request',
  'unauthorized',
  'source_not_allowed',
  'body_too_large',
  'unsupported_media_type',
  'validation_error',
  'overloaded',
  'dependency_unavailable',
] as const

void test('OpenAPI has the statuses and the form of the errors of each protocol', async (t) => {
  const head = new Request({
    method: 'POST',
    path: '/',
    queryText: '',
    headers: new HeaderBag(),
    params: {},
    ip: () => '127.0.0.1',
    requestId: 'r',
    log: { info() {}, warn() {}, error() {} },
    signal: () => new AbortController().signal,
    isOver: () => false,
  })
  for (const { method, path, toErrorReply = toOwnReply } of routes) {
    const responses = paths[withoutPrefix(path)]?.[method.toLowerCase()]?.responses ?? {}
    const errors = Object.entries(responses).filter(([status]) => Number(status) >= 400)
    const replies = CODES.map((code) => toErrorReply(new AppError(code, 'x'), head))
    const statuses = new Set(replies.map(({ status }) => String(status)))
    t.same(errors.map(([status]) => status).toSorted(), [...statuses].toSorted(), path)
    if (path === '/ingest') continue
    const isOwn = JSON.stringify(replies[0]).includes('"detail":{')
    for (const [status, { description }] of errors)
      t.equal(description.includes('`/ingest`'), isOwn, `${path}: ${status} ${description}`)
  }
})
