import { Type } from '@sinclair/typebox'
import t from 'tap'
import { createDocsRoutes } from '../../../src/api/docs.js'
import { GUIDES } from '../../../src/api/guides.js'
import { collectComponents } from '../../../src/api/openapi-components.js'
import { createOpenApi, webSocketOperation } from '../../../src/api/openapi.js'
import type { OpenApiDocument } from '../../../src/api/openapi.js'
import { multipart, route } from '../../../src/api/route.js'
import { startServer } from '../../support/http.js'

const Thing = Type.Object({ id: Type.Integer(), name: Type.String() }, { title: 'Thing' })

const routes = [
  route({
    id: 'listThings',
    method: 'get',
    path: '/api/things',
    summary: 'All things',
    description: 'Newest first.',
    role: 'viewer',
    query: Type.Object({
      limit: Type.Integer({ minimum: 1, default: 10, description: 'how many' }),
      kind: Type.Optional(Type.Array(Type.String())),
      enabled: Type.Boolean(),
    }),
    reply: Type.Array(Thing),
    errors: ['invalid_cursor'],
    handle: () => [],
  }),
  route({
    id: 'createThing',
    method: 'post',
    path: '/api/things',
    summary: 'A new thing',
    role: 'admin',
    limit: 'source_create_limit',
    bodyBytes: 1000,
    body: Type.Object({ name: Type.String() }),
    reply: Thing,
    status: 201,
    errors: ['source_already_exists'],
    examples: { body: { name: 'x' }, reply: { id: 1, name: 'x' } },
    handle: () => ({ id: 1, name: 'x' }),
  }),
  route({
    id: 'upload',
    method: 'post',
    path: '/api/things/{id}/file',
    summary: 'A file',
    role: 'public',
    limit: 'login_limit',
    bodyBytes: 1000,
    params: Type.Object({ id: Type.Integer() }),
    body: multipart({
      fields: Type.Object({ note: Type.String() }),
      files: ['file'],
      fileBytes: 900,
    }),
    reply: Type.Null(),
    status: 204,
    errors: [],
    handle: () => null,
  }),
  route({
    id: 'health',
    method: 'get',
    path: '/api/monitoring/health',
    summary: 'Health',
    role: 'public',
    reply: Type.Object({ status: Type.String() }),
    alsoStatuses: [503],
    errors: [],
    handle: () => ({ status: 'ok' }),
  }),
]

const document = createOpenApi({
  title: 'Test',
  version: '1.2.3',
  description: 'About',
  routes,
  tags: { things: 'Things that are' },
  extra: [
    webSocketOperation('/ws/x', { id: 'live', summary: 'Live', description: 'Live', tag: 'ws' }),
  ],
})

/** Follows a path into the document; undefined where it ends. */
function at(value: unknown, ...steps: (string | number)[]): unknown {
  let here = value
  for (const step of steps) here = Object(here)[step]
  return here
}

const operation = (path: string, method: string, ...steps: (string | number)[]) =>
  at(document, 'paths', path, method, ...steps)

/** Every value of the document, from the root down. */
function* nodes(value: unknown): Generator<object> {
  if (typeof value !== 'object' || value === null) return
  yield value
  for (const child of Object.values(value)) yield* nodes(child)
}

function danglingReferences(whole: OpenApiDocument): string[] {
  const references = [...nodes(whole)].flatMap((node) =>
    '$ref' in node ? [String(node.$ref)] : [],
  )
  return references.filter((ref) => at(whole, ...ref.split('/').slice(1)) === undefined)
}

t.test('parameters say their place, type, default and whether they are needed', async (t) => {
  t.match(operation('/api/things', 'get', 'parameters'), [
    {
      name: 'limit',
      in: 'query',
      required: false,
      description: 'how many',
      schema: { type: 'integer', minimum: 1, default: 10 },
    },
    { name: 'kind', required: false, style: 'form', explode: true },
    { name: 'enabled', required: true },
  ])
  t.match(operation('/api/things/{id}/file', 'post', 'parameters'), [
    { name: 'id', in: 'path', required: true },
  ])
})

t.test('roles and limits show as security, text and error replies', async (t) => {
  t.same(operation('/api/things', 'get', 'security'), [{ bearer: [] }, { cookie: [] }])
  t.same(operation('/api/monitoring/health', 'get', 'security'), [])
  t.match(operation('/api/things', 'get', 'description'), /Newest first[^]*role viewer/)
  const statuses = (path: string, method: string) =>
    Object.keys(Object(operation(path, method, 'responses')))
  t.same(statuses('/api/things', 'get'), ['200', '401', '403', '422', '429', '500', '503'])
  t.same(statuses('/api/things', 'post'), [
    '201',
    '401',
    '403',
    '408',
    '409',
    '413',
    '415',
    '422',
    '429',
    '500',
    '503',
  ])
  t.match(operation('/api/things', 'get', 'responses', '422', 'description'), /`invalid_cursor`/)
  t.match(operation('/api/things', 'post', 'responses', '429', 'headers'), { 'Retry-After': {} })
  t.notMatch(operation('/api/things', 'get', 'responses', '401', 'headers'), { 'Retry-After': {} })
})

t.test('a status that a reply may carry is not taken for an error', async (t) => {
  const schema = ['content', 'application/json', 'schema']
  t.match(operation('/api/monitoring/health', 'get', 'responses', '503', ...schema), {
    properties: { status: { type: 'string' } },
  })
})

t.test('bodies carry schema and example, and a form its files', async (t) => {
  const json = operation('/api/things', 'post', 'requestBody', 'content', 'application/json')
  t.match(json, { schema: { additionalProperties: false }, example: { name: 'x' } })
  const schema = ['requestBody', 'content', 'multipart/form-data', 'schema']
  t.match(operation('/api/things/{id}/file', 'post', ...schema), {
    required: ['note', 'file'],
    properties: { file: { contentMediaType: 'application/octet-stream' } },
  })
})

t.test('a titled schema is written once and every reference leads somewhere', async (t) => {
  const reply = ['responses', '200', 'content', 'application/json', 'schema']
  t.same(operation('/api/things', 'get', ...reply), {
    type: 'array',
    items: { $ref: '#/components/schemas/Thing' },
  })
  t.match(at(document, 'components', 'schemas', 'Thing'), { required: ['id', 'name'] })
  t.same(danglingReferences(document), [])
})

t.test('tuples are spelled as in JSON Schema 2020-12', (t) => {
  const pair = Type.Tuple([Type.Number(), Type.String()])
  const { value } = collectComponents({ schema: pair })
  t.same(value, {
    schema: {
      type: 'array',
      prefixItems: [{ type: 'number' }, { type: 'string' }],
      items: false,
      minItems: 2,
      maxItems: 2,
    },
  })
  t.end()
})

t.test('operation ids are unique and tags are listed', async (t) => {
  const ids = [...nodes(at(document, 'paths'))].flatMap((node) =>
    'operationId' in node ? [node.operationId] : [],
  )
  t.equal(new Set(ids).size, routes.length + 1, 'the routes and the WebSocket')
  t.same(at(document, 'tags'), [
    { name: 'things', description: 'Things that are' },
    { name: 'monitoring' },
    { name: 'ws' },
  ])
})

t.test('the docs are served whole, from this server alone', async (t) => {
  const { url } = startServer(t, { routes: createDocsRoutes(() => document) })
  const description = await fetch(`${url}/openapi.json`)
  t.match(description.headers.get('content-type'), /^application\/json/)
  t.same(await description.json(), JSON.parse(JSON.stringify(document)))
  const page = await fetch(`${url}/docs`)
  t.match(page.headers.get('content-security-policy'), /default-src 'none'.*script-src 'self'/)
  const html = await page.text()
  const links = [...html.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map((match) => match[1] ?? '')
  t.ok(links.length >= 2)
  const seen = new Set<string>()
  const queue = [...links]
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    if (seen.has(path)) continue
    seen.add(path)
    const asset = await fetch(url + path)
    t.equal(asset.status, 200, path)
    const text = await asset.text()
    if (GUIDES.some((name) => path === `/docs/${name}`)) continue // guides.test.ts
    // Of a package; a browser tells whom it asks (flow/contract/docs.test.ts).
    if (path.startsWith('/docs/swagger-ui')) continue
    t.notMatch(
      text,
      /https?:\/\/|innerHTML|insertAdjacentHTML|\beval\b/,
      `${path} is self-contained`,
    )
    for (const [, file] of text.matchAll(/from '\.\/([\w-]+\.js)'/g)) queue.push(`/docs/${file}`)
  }
  t.ok(seen.size >= 8)
})
