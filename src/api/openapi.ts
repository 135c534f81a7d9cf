import { OptionalKind } from '@sinclair/typebox'
import type { TObject, TSchema } from '@sinclair/typebox'
import { ERRORS } from '../model/errors.js'
import type { ErrorCode } from '../model/errors.js'
import { collectComponents } from './openapi-components.js'
import { COLD_HEADER, isMultipart, mayReadCold } from './route.js'
import type { ApiRoute, MultipartBody } from './route.js'
import { exampleOf } from './openapi-example.js'
import { PARAMETER_DESCRIPTIONS } from './parameter-descriptions.js'
import { closeObjects } from './validation.js'

export interface ExtraOperation {
  readonly path: string
  readonly method: 'get' | 'post' | 'put'
  readonly operation: Readonly<Record<string, unknown>>
}

export interface OpenApiOptions {
  readonly title: string
  readonly version: string
  readonly description: string
  readonly routes: readonly DocumentedRoute[]
  /** Descriptions by tag; tags of routes that are missing here are added without one. */
  readonly tags?: Readonly<Record<string, string>>
  /** Paths that are not in the route table, such as the WebSocket. */
  readonly extra?: readonly ExtraOperation[]
}

type DocumentedRoute = Omit<ApiRoute, 'handle'>

type Json = Readonly<Record<string, unknown>>

export type OpenApiDocument = Json

/** Describes a WebSocket as its upgrade request, because OpenAPI has no form for it. */
export function webSocketOperation(
  path: string,
  about: {
    readonly id: string
    readonly summary: string
    readonly description: string
    readonly tag: string
  },
): ExtraOperation {
  const { id, summary, description, tag } = about
  const responses = { 101: { description: 'The connection is open' } }
  return {
    path,
    method: 'get',
    operation: {
      operationId: id,
      summary,
      description,
      tags: [tag],
      'x-websocket': true,
      'x-no-try': true,
      security: [{ bearer: [] }, { cookie: [] }],
      parameters: [],
      responses,
    },
  }
}

/** Derives an OpenAPI 3.1 document from the route table. */
export function createOpenApi(options: OpenApiOptions): OpenApiDocument {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of options.routes) {
    const item = (paths[route.path] ??= {})
    item[route.method] = toOperation(route)
  }
  for (const { path, method, operation } of options.extra ?? []) {
    const item = (paths[path] ??= {})
    item[method] = operation
  }
  const { schemas, value } = collectComponents(paths)
  return {
    openapi: '3.1.0',
    info: { title: options.title, version: options.version, description: options.description },
    servers: [{ url: '/' }],
    tags: toTags(options),
    paths: value,
    components: {
      schemas: { Error: ERROR_SCHEMA, ...schemas },
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
        cookie: { type: 'apiKey', in: 'cookie', name: 'ACCESS_TOKEN' },
        ingestKey: { type: 'apiKey', in: 'header', name: 'X-Api-Key' },
        webhookSignature: { type: 'apiKey', in: 'header', name: 'X-Scm-Token' },
      },
    },
  }
}

const ERROR_SCHEMA = {
  type: 'object',
  description: 'The one form of every error',
  required: ['detail'],
  properties: {
    detail: {
      type: 'object',
      required: ['message', 'code', 'details'],
      properties: {
        message: { type: 'string', description: 'for people' },
        code: { type: 'string', enum: Object.keys(ERRORS) },
        details: { type: 'object', description: 'the context, e.g. which fields are wrong' },
      },
    },
  },
}

function toTags({ routes, extra = [], tags = {} }: OpenApiOptions): Json[] {
  const used = routes.map(tagOf)
  for (const { operation } of extra) {
    const own: unknown = operation['tags']
    if (Array.isArray(own)) used.push(...own.map(String))
  }
  const names = new Set([...Object.keys(tags), ...used])
  return [...names].map((name) => {
    const description = tags[name]
    return description === undefined ? { name } : { name, description }
  })
}

/** `/api/ai-insights/snapshot` → `ai-insights` */
function tagOf({ tag, path }: DocumentedRoute): string {
  return tag ?? path.split('/').filter((segment) => segment !== 'api')[1] ?? 'other'
}

function toOperation(route: DocumentedRoute): Json {
  const { id, summary, role, limit, body } = route
  return {
    operationId: id,
    summary,
    description: describe(route),
    tags: [tagOf(route)],
    'x-role': role,
    ...(role === 'public' ? {} : { 'x-api-tokens': route.tokens ?? 'all' }),
    ...(limit === 'none' ? {} : { 'x-rate-limit': limit }),
    security: role === 'public' ? [] : [{ bearer: [] }, { cookie: [] }],
    parameters: [...toParameters('path', route.params), ...toParameters('query', route.query)],
    ...(body === null ? {} : { requestBody: toRequestBody(route, body) }),
    responses: { ...toSuccess(route), ...toFailures(route) },
  }
}

const OF_TOKENS = {
  none: ' Not for API tokens.',
  limited: ' An API token that is limited to sources reads only theirs.',
} as const

function describe({ description, role, limit, tokens }: DocumentedRoute): string {
  const who = role === 'public' ? 'Needs no token.' : `Needs the role ${role}.`
  const access = who + (tokens === undefined ? '' : OF_TOKENS[tokens])
  const limited = limit === 'none' ? '' : ` Limited by the setting \`${limit.toUpperCase()}\`.`
  return [description, access + limited].filter((text) => text !== undefined).join('\n\n')
}

function toParameters(place: 'path' | 'query', schema: TObject | null): Json[] {
  return Object.entries(schema?.properties ?? {}).map(([name, property]) => {
    const { description = PARAMETER_DESCRIPTIONS[name], ...rest } = property
    const isList = property['type'] === 'array'
    return {
      name,
      in: place,
      required: place === 'path' || !(OptionalKind in property || 'default' in property),
      ...(description === undefined ? {} : { description }),
      // Lists may be repeated or joined with commas, but OpenAPI can express only one of these.
      ...(isList ? { style: 'form', explode: true } : {}),
      schema: rest,
    }
  })
}

function toRequestBody(
  { bodyBytes, examples }: DocumentedRoute,
  body: TSchema | MultipartBody,
): Json {
  const description = `At most ${bodyBytes} bytes.`
  if (isMultipart(body)) {
    const content = { 'multipart/form-data': { schema: toFormSchema(body) } }
    return { required: true, description, content }
  }
  const example = examples?.body ?? exampleOf(body)
  const content = { 'application/json': { schema: closeObjects(body), example } }
  return { required: !(OptionalKind in body), description, content }
}

function toFormSchema({ fields, files, fileBytes }: MultipartBody): Json {
  const file = {
    type: 'string',
    contentMediaType: 'application/octet-stream',
    description: `a file of at most ${fileBytes} bytes`,
  }
  return {
    type: 'object',
    required: [...(fields.required ?? []), ...files],
    properties: { ...fields.properties, ...Object.fromEntries(files.map((name) => [name, file])) },
  }
}

const SUCCESS: Readonly<Record<number, string>> = {
  200: 'Done',
  201: 'Created',
  202: 'Accepted',
  204: 'Done; no body',
  302: 'To the address of `Location`',
  503: 'A dependency is down',
}

const COLD = {
  headers: {
    [COLD_HEADER]: {
      description:
        'only when events of cold storage were read, which takes longer: those that arrived before this time may be there',
      schema: { type: 'string', format: 'date-time' },
    },
  },
}

function toSuccess(route: DocumentedRoute): Json {
  const { status, alsoStatuses = [], reply, produces = 'application/json', examples } = route
  const types = [produces].flat()
  const isJson = produces === 'application/json'
  const example = examples?.reply ?? (isJson ? exampleOf(reply) : undefined)
  const media = { schema: reply, ...(example === undefined ? {} : { example }) }
  const also = route.alsoProduces
  const others =
    also === undefined
      ? {}
      : { [also.type]: { schema: { type: 'string', description: also.description } } }
  const entries = [status, ...alsoStatuses].map((code) => {
    const description = SUCCESS[code] ?? 'Reply'
    if (code === 204 || code === 302) return [code, { description }]
    const inTypes = types.map((type, i) => [type, i === 0 ? media : { schema: reply }])
    const content = { ...Object.fromEntries(inTypes), ...others }
    return [code, { description, ...(mayReadCold(route) ? COLD : {}), content }]
  })
  return Object.fromEntries(entries)
}

/** One response for each status; its description and examples list the error codes. */
function toFailures(route: DocumentedRoute): Json {
  return failuresOf(impliedErrors(route), [route.status, ...(route.alsoStatuses ?? [])])
}

/** The replies to errors, by status, except statuses that the operation documents itself. */
export function failuresOf(errors: Iterable<ErrorCode>, others: readonly number[] = []): Json {
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of errors) {
    const { status } = ERRORS[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  const entries = [...byStatus]
    .filter(([status]) => !others.includes(status))
    .sort(([a], [b]) => a - b)
    .map(([status, codes]) => [status, toFailure(codes)])
  return Object.fromEntries(entries)
}

function errorsOfAccess({
  role,
  isOpenBeforeRequiredAction,
}: DocumentedRoute): readonly ErrorCode[] {
  if (role === 'public') return []
  return [
    'unauthorized',
    'token_expired',
    // Also returned to API tokens that the route does not accept.
    'forbidden',
    'rate_limited',
    ...(isOpenBeforeRequiredAction === true
      ? []
      : (['password_change_required', 'second_factor_missing'] as const)),
  ]
}

function impliedErrors(route: DocumentedRoute) {
  const { limit, onLimited, question, body, params, query, errors } = route
  const codes = new Set<ErrorCode>([...errors, ...errorsOfAccess(route)])
  if (limit !== 'none' && onLimited === undefined) codes.add('rate_limited')
  if (question !== undefined) codes.add('overloaded')
  if (params !== null) codes.add('bad_request')
  if (params !== null || body !== null || Object.keys(query.properties).length > 0) {
    codes.add('validation_error')
  }
  if (body !== null) {
    codes.add(isMultipart(body) ? 'file_too_large' : 'body_too_large')
    codes.add('unsupported_media_type').add('request_timeout').add('overloaded')
  }
  return codes.add('internal_error').add('dependency_unavailable')
}

const RETRY_AFTER = {
  description: 'seconds until another try may succeed',
  schema: { type: 'integer', minimum: 1 },
}

function toFailure(codes: readonly ErrorCode[]): Json {
  const isRetry = codes.some((code) => ERRORS[code].retry && ERRORS[code].status !== 408)
  const example = (code: ErrorCode) => ({ value: { detail: { message: code, code, details: {} } } })
  const examples = Object.fromEntries(codes.map((code) => [code, example(code)]))
  return {
    description: codes.map((code) => `\`${code}\``).join(', '),
    ...(isRetry ? { headers: { 'Retry-After': RETRY_AFTER } } : {}),
    content: {
      'application/json': { schema: { $ref: '#/components/schemas/Error' }, examples },
    },
  }
}
