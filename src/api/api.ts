import type { TSchema } from '@sinclair/typebox'
import { refuseContentCoding } from '../http/decompress.js'
import { parseMultipart } from '../http/multipart.js'
import type { MultipartFile } from '../http/multipart.js'
import type { Reply } from '../http/reply.js'
import type { HttpRequest, RequestHead } from '../http/request.js'
import type { Admission, HttpRoute } from '../http/routes.js'
import type { Uws } from '../http/uws.js'
import { AppError } from '../model/errors.js'
import type { LimitName, LimitSubject } from './auth/limits.js'
import type { MayUseCookies } from './auth/origin.js'
import { isAtLeast } from '../model/roles.js'
import type { Role } from '../model/roles.js'
import { JsonText, RouteReply, isMultipart, isOptional } from './route.js'
import type { ApiRoute, Caller, CheckedInput, MultipartBody } from './route.js'
import { createValidator, throwOnErrors } from './validation.js'
import type { FieldError, TextCheck, Validator } from './validation.js'

export interface ApiOptions<Services> {
  readonly uws: Uws
  readonly routes: readonly ApiRoute<Services>[]
  readonly services: Services
  /** Given when there are other instances: resolves when what they answered for is known here; never rejects. */
  readonly current?: () => Promise<void>
  /** @throws AppError to answer with when the request shows no valid access token */
  readonly authenticate: (head: RequestHead) => Caller
  /**
   * Counts one request: on a public route before anything else, otherwise once the user is known.
   *
   * @throws AppError rate_limited
   */
  readonly consume: (limit: LimitName, subject: LimitSubject) => Promise<void>
  /** Asked for requests that change something and carry a cookie but no bearer token. */
  readonly mayUseCookies: MayUseCookies
  /** Told of a user who is turned away at the door of a route: the role or the origin does not suffice. */
  readonly onRefused?: (
    route: ApiRoute<Services>,
    caller: Caller,
    refused: { readonly head: RequestHead; readonly error: AppError },
  ) => void
  /** holds every reply to its schema, for tests: a mismatch is answered with internal_error */
  readonly checkReplies?: boolean
}

/** A route with what checks its input. */
interface CompiledRoute<Services> {
  readonly route: ApiRoute<Services>
  readonly query: TextCheck
  readonly params: TextCheck | null
  readonly body: BodyParser
  readonly checkReply: (value: unknown) => void
}

type BodyParser = (request: HttpRequest, errors: FieldError[]) => unknown

const METHODS = {
  get: 'GET',
  post: 'POST',
  put: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
} as const

export function createApi<Services>(options: ApiOptions<Services>): HttpRoute[] {
  const validator = createValidator()
  return options.routes.map((route) => {
    const compiled = compile(route, validator, options)
    const { id, method, path, bodyBytes, handlerTimeoutMs } = route
    return {
      id,
      method: METHODS[method],
      path,
      bodyBytes,
      oversizeCode: isMultipart(route.body) ? 'file_too_large' : 'body_too_large',
      ...(handlerTimeoutMs === undefined ? {} : { handlerTimeoutMs }),
      admit: (head) => admit(compiled, options, head),
    }
  })
}

function compile<Services>(
  route: ApiRoute<Services>,
  validator: Validator,
  { uws, checkReplies = false }: ApiOptions<Services>,
): CompiledRoute<Services> {
  return {
    route,
    query: validator.texts('query', route.query),
    params: route.params === null ? null : validator.texts('path', route.params),
    body: toBodyParser(route, validator, uws),
    checkReply: checkReplies ? toReplyCheck(route, validator) : () => undefined,
  }
}

/**
 * Limit by address, what others changed, token, role, origin, limit by user; all before the body is looked
 * at. Without a limit and without others it is decided at once.
 */
function admit<Services>(
  compiled: CompiledRoute<Services>,
  options: ApiOptions<Services>,
  head: RequestHead,
): Admission | Promise<Admission> {
  const { limit, isOfInstance } = compiled.route
  const mayBeLate = options.current !== undefined && isOfInstance !== true
  if (limit !== 'none' || mayBeLate) return admitInTime(compiled, options, head)
  return toAdmission(compiled, options, checkCaller(compiled.route, options, head))
}

async function admitInTime<Services>(
  compiled: CompiledRoute<Services>,
  options: ApiOptions<Services>,
  head: RequestHead,
): Promise<Admission> {
  const { limit, role } = compiled.route
  if (limit !== 'none' && role === 'public') await options.consume(limit, { address: head.ip })
  await options.current?.()
  const caller = checkCaller(compiled.route, options, head)
  if (limit !== 'none' && role !== 'public' && caller !== null)
    await options.consume(limit, { address: head.ip, userId: caller.userId })
  return toAdmission(compiled, options, caller)
}

const toAdmission = <Services>(
  compiled: CompiledRoute<Services>,
  { services }: ApiOptions<Services>,
  caller: Caller | null,
): Admission => ({
  kind: 'admitted',
  handle: (request) => answer(compiled, services, caller, request),
})

/** @returns null on a public route that is called without a valid token */
function checkCaller<Services>(
  route: ApiRoute<Services>,
  options: ApiOptions<Services>,
  head: RequestHead,
): Caller | null {
  const caller = findCaller(route.role, options, head)
  try {
    if (caller !== null && route.role !== 'public') checkRole(route.role, caller)
    checkOrigin(route, caller, options, head)
  } catch (error) {
    if (caller !== null && error instanceof AppError)
      options.onRefused?.(route, caller, { head, error })
    throw error
  }
  return caller
}

function findCaller<Services>(
  role: Role | 'public',
  { authenticate }: ApiOptions<Services>,
  head: RequestHead,
): Caller | null {
  try {
    return authenticate(head)
  } catch (error) {
    if (role === 'public' && error instanceof AppError && error.status === 401) return null
    throw error
  }
}

function checkRole(needed: Role, { role }: Caller): void {
  if (isAtLeast(role, needed)) return
  const details = { required_role: needed }
  throw new AppError('forbidden', `this needs the role ${needed}`, { details })
}

function checkOrigin<Services>(
  { method }: ApiRoute<Services>,
  principal: Caller | null,
  { mayUseCookies }: ApiOptions<Services>,
  { headers }: RequestHead,
): void {
  if (method === 'get' || principal?.via === 'bearer') return
  if (headers.first('cookie') === undefined || mayUseCookies(headers)) return
  throw new AppError('forbidden', 'the origin is not allowed')
}

/** At once when the handler is: most of what is answered from memory is. */
function answer<Services>(
  { route, query, params, body, checkReply }: CompiledRoute<Services>,
  services: Services,
  principal: Caller | null,
  request: HttpRequest,
): Reply | Promise<Reply> {
  const errors: FieldError[] = []
  const input = new Input(request, principal, {
    params: params === null ? {} : params(fromRecord(request.params), errors),
    query: query(request.queryText === '' ? NO_TEXTS : request.query, errors),
    body: body(request, errors),
  })
  throwOnErrors(errors)
  const finish = (result: unknown): Reply => {
    const full = result instanceof RouteReply ? result : new RouteReply(result)
    checkReply(full.body)
    return toReply(route, full)
  }
  const result = route.handle(input, services)
  return result instanceof Promise ? result.then(finish) : finish(result)
}

class Input implements CheckedInput {
  readonly params: unknown
  readonly query: unknown
  readonly body: unknown
  readonly principal: Caller | null
  readonly head: RequestHead

  constructor(
    head: RequestHead,
    principal: Caller | null,
    { params, query, body }: Pick<CheckedInput, 'params' | 'query' | 'body'>,
  ) {
    this.head = head
    this.principal = principal
    this.params = params
    this.query = query
    this.body = body
  }

  /** made when asked for: most handlers are done too soon for it to matter */
  get signal(): AbortSignal {
    return this.head.signal
  }
}

const NO_TEXTS = { getAll: (): readonly string[] => [] }

const fromRecord = (record: Readonly<Record<string, string>>) => ({
  getAll: (name: string): string[] => {
    const value = Object.hasOwn(record, name) ? record[name] : undefined
    return value === undefined ? [] : [value]
  },
})

function toReply<Services>(route: ApiRoute<Services>, full: RouteReply<unknown>): Reply {
  const status = full.status ?? route.status
  const { headers, cookies, body } = full
  if (status === 204) return { status, headers, cookies }
  if (body instanceof JsonText) return { status, headers, cookies, jsonText: body.text }
  if (route.produces === undefined) return { status, headers, cookies, json: body }
  const typed = { 'Content-Type': route.produces, ...headers }
  return { status, headers: typed, cookies, body: String(body) }
}

function toReplyCheck<Services>(
  { id, reply, status, produces }: ApiRoute<Services>,
  validator: Validator,
): (value: unknown) => void {
  if (status === 204 || produces !== undefined) return () => undefined
  const check = validator.json(reply)
  return (value) => {
    const errors: FieldError[] = []
    // dates and undefined fields take their JSON form first
    check(JSON.parse(value instanceof JsonText ? value.text : JSON.stringify(value)), errors)
    if (errors.length === 0) return
    throw new Error(`bug: reply of ${id} breaks its schema: ${JSON.stringify(errors)}`)
  }
}

function toBodyParser<Services>(
  { body }: ApiRoute<Services>,
  validator: Validator,
  uws: Uws,
): BodyParser {
  if (body === null) return () => null
  const parse = isMultipart(body) ? formParser(body, validator, uws) : jsonParser(body, validator)
  return (request, errors) => {
    refuseContentCoding(request.headers)
    return parse(request, errors)
  }
}

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i
const UTF8 = new TextDecoder('utf-8', { fatal: true })

function jsonParser(schema: TSchema, validator: Validator): BodyParser {
  const check = validator.json(schema)
  const optional = isOptional(schema)
  return ({ body, headers }, errors) => {
    if (body.byteLength === 0) {
      if (!optional) errors.push({ in: 'body', path: '', message: 'a JSON body is required' })
      return null
    }
    if (!JSON_TYPE.test(headers.first('content-type') ?? '')) {
      throw new AppError('unsupported_media_type', 'the body must be application/json')
    }
    const value = parseJson(body, errors)
    if (value !== undefined) check(value, errors)
    return value
  }
}

/** @returns undefined, having said so in `errors`, when the body is not JSON */
function parseJson(body: Uint8Array, errors: FieldError[]): unknown {
  try {
    const text = UTF8.decode(body)
    return SURROGATE.test(text) ? JSON.parse(text, refuseLone) : JSON.parse(text)
  } catch (error) {
    const message = error instanceof LoneSurrogate ? error.message : 'body is not valid JSON'
    errors.push({ in: 'body', path: '', message })
    return undefined
  }
}

const SURROGATE = /\\u[dD][89a-fA-F]/
/** With the `u` flag a pair is one letter and only a lone half is a surrogate. */
const LONE = /\p{Surrogate}/u

/** Half a character can't be stored: it would read back as another text. */
class LoneSurrogate extends Error {
  override readonly message = 'a text holds half of a surrogate pair'
}

function refuseLone(key: string, value: unknown): unknown {
  if (LONE.test(key) || (typeof value === 'string' && LONE.test(value))) throw new LoneSurrogate()
  return value
}

/** Text fields of a form are short: names, types, ids. */
const FIELD_BYTES = 16_384

function formParser(form: MultipartBody, validator: Validator, uws: Uws): BodyParser {
  const checkFields = validator.texts('body', form.fields)
  const parts = Object.keys(form.fields.properties).length + form.files.length + 16
  const limits = { fileBytes: form.fileBytes, fieldBytes: FIELD_BYTES, parts }
  return ({ body, headers }, errors) => {
    const type = headers.first('content-type') ?? ''
    const { fields, files } = parseMultipart(uws, body, type, limits)
    const byName: Record<string, MultipartFile> = {}
    for (const name of form.files) {
      const given = files.filter((file) => file.name === name)
      if (given[0] !== undefined && given.length === 1) byName[name] = given[0]
      else errors.push({ in: 'body', path: name, message: 'one file is required' })
    }
    return { fields: checkFields(fromRecord(fields), errors), files: byName }
  }
}
