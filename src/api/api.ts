import type { TSchema } from '@sinclair/typebox'
import { parseMultipart } from '../edge/multipart.js'
import type { MultipartFile } from '../edge/multipart.js'
import type { Reply } from '../edge/reply.js'
import type { EdgeRequest, RequestHead } from '../edge/request.js'
import type { Admission, EdgeRoute } from '../edge/routes.js'
import type { Uws } from '../edge/uws.js'
import { AppError } from '../model/errors.js'
import { ROLES, RouteReply, isMultipart, isOptional } from './route.js'
import type { ApiRoute, CheckedInput, MultipartBody, Principal } from './route.js'
import { createValidator, throwOnErrors } from './validation.js'
import type { FieldError, TextCheck, Validator } from './validation.js'

export interface ApiOptions<Services> {
  readonly uws: Uws
  readonly routes: readonly ApiRoute<Services>[]
  readonly services: Services
  /** @returns the error to answer with when the request shows no valid access token */
  readonly authenticate: (head: RequestHead) => Principal | AppError | Promise<Principal | AppError>
  /**
   * Counts one request against a limit.
   *
   * @param key `user:<id>` or, on public routes, `ip:<address>`
   * @returns whole seconds to wait when the limit is exceeded, else null
   */
  readonly consume: (limit: string, key: string) => number | null | Promise<number | null>
  /**
   * Asked for requests that change something and carry a cookie but no bearer token, when the
   * client names an origin; needed with SameSite=None. Absent allows all.
   */
  readonly allowOrigin?: (origin: string, host: string) => boolean
  /** holds every reply to its schema, for tests: a mismatch is answered with internal_error */
  readonly checkReplies?: boolean
}

/** A route with its schemas compiled. */
interface CompiledRoute<Services> {
  readonly route: ApiRoute<Services>
  readonly query: TextCheck
  readonly params: TextCheck | null
  readonly body: BodyParser
  readonly checkReply: (value: unknown) => void
}

type BodyParser = (request: EdgeRequest, errors: FieldError[]) => unknown

/** @throws Error when a schema cannot be compiled: a fault of the program, found at start */
export function createApi<Services>(options: ApiOptions<Services>): EdgeRoute[] {
  const validator = createValidator()
  return options.routes.map((route) => {
    const compiled = compile(route, validator, options)
    const { id, method, path, bodyBytes, handlerTimeoutMs } = route
    return {
      id,
      method,
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

/** Limit by address, token, role, origin, limit by user; all before the body is looked at. */
async function admit<Services>(
  compiled: CompiledRoute<Services>,
  options: ApiOptions<Services>,
  head: RequestHead,
): Promise<Admission> {
  const { route } = compiled
  if (route.role === 'public') await countRequest(route.limit, `ip:${head.ip}`, options)
  const caller = await options.authenticate(head)
  if (caller instanceof AppError && route.role !== 'public') throw caller
  const principal = caller instanceof AppError ? null : caller
  if (principal !== null) checkRole(route, principal)
  checkOrigin(route, principal, options, head)
  if (route.role !== 'public' && principal !== null) {
    await countRequest(route.limit, `user:${principal.userId}`, options)
  }
  return {
    kind: 'admitted',
    handle: (request) => answer(compiled, options.services, principal, request),
  }
}

async function countRequest<Services>(
  limit: string,
  key: string,
  { consume }: ApiOptions<Services>,
): Promise<void> {
  if (limit === 'none') return
  const retryAfterS = await consume(limit, key)
  if (retryAfterS === null) return
  const details = { limit, retry_after_s: retryAfterS }
  throw new AppError('rate_limited', 'too many requests', { details, retryAfterS })
}

function checkRole<Services>({ role }: ApiRoute<Services>, principal: Principal): void {
  if (role === 'public' || ROLES.indexOf(principal.role) >= ROLES.indexOf(role)) return
  const details = { required_role: role }
  throw new AppError('forbidden', `this needs the role ${role}`, { details })
}

function checkOrigin<Services>(
  { method }: ApiRoute<Services>,
  principal: Principal | null,
  { allowOrigin }: ApiOptions<Services>,
  { headers }: RequestHead,
): void {
  if (allowOrigin === undefined || method === 'GET' || principal?.via === 'bearer') return
  const origin = headers.first('origin')
  if (origin === undefined || headers.first('cookie') === undefined) return
  if (allowOrigin(origin, headers.first('host') ?? '')) return
  throw new AppError('forbidden', 'the origin is not allowed')
}

async function answer<Services>(
  { route, query, params, body, checkReply }: CompiledRoute<Services>,
  services: Services,
  principal: Principal | null,
  request: EdgeRequest,
): Promise<Reply> {
  const errors: FieldError[] = []
  const input: CheckedInput = {
    params: params?.(fromRecord(request.params), errors) ?? {},
    query: query(request.query, errors),
    body: body(request, errors),
    principal,
    head: request,
    signal: request.signal,
  }
  throwOnErrors(errors)
  const result = await route.handle(input, services)
  const full = result instanceof RouteReply ? result : new RouteReply(result)
  checkReply(full.body)
  return toReply(route, full)
}

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
    check(JSON.parse(JSON.stringify(value)), errors)
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
  return isMultipart(body) ? formParser(body, validator, uws) : jsonParser(body, validator)
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
    return JSON.parse(UTF8.decode(body))
  } catch {
    errors.push({ in: 'body', path: '', message: 'body is not valid JSON' })
    return undefined
  }
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
