import type { TSchema } from '@sinclair/typebox'
import { answerPartly } from '../clickhouse/cluster/partial.js'
import { refuseContentCoding } from '../http/decompress.js'
import { parseMultipart } from '../http/multipart.js'
import type { MultipartFile } from '../http/multipart.js'
import type { Reply } from '../http/reply.js'
import { readFraming, type HttpRequest, type RequestHead } from '../http/request.js'
import type { Admission, HttpRoute } from '../http/routes.js'
import type { Uws } from '../http/uws.js'
import { answerNotingCold } from '../events/cold-reads.js'
import { AppError } from '../model/errors.js'
import { unfulfilled } from './auth/required-action.js'
import type { LimitName, LimitSubject } from './auth/limits.js'
import type { MayUseCookies } from './auth/origin.js'
import { isAtLeast } from '../model/roles.js'
import type { Role } from '../model/roles.js'
import {
  ByteStream,
  COLD_HEADER,
  JsonText,
  RouteReply,
  TypedText,
  isMultipart,
  isOptional,
  mayBePartial,
} from './route.js'
import type { ApiRoute, Caller, CheckedInput, MultipartBody } from './route.js'
import type { Services } from './services.js'
import { createValidator, throwOnErrors } from './validation.js'
import type { FieldError, TextCheck, Validator } from './validation.js'

/*
 * The way of a request through the API.
 *
 * `http/` has matched the route and aborts the request when the client disconnects or the deadline passes.
 *  1. admit, before the body is read: a public route counts the request against its limit by address;
 *     with several instances, the change log is caught up; the access token gives the user, whose role
 *     must suffice; a request that is authenticated by a cookie must come from an allowed origin; other
 *     routes count the request against their limit by user.
 *  2. `http/` reads the body up to the route's `bodyBytes`.
 *  3. answer: the caller of a request that has a body is checked again, because bodies may take minutes.
 *     Path, query and body are parsed and validated against the schemas of the route, and all errors are
 *     reported together. The handler runs, and its result becomes the reply.
 * An AppError that is thrown in any of these steps becomes the reply.
 */

export interface ApiOptions {
  readonly uws: Uws
  readonly routes: readonly ApiRoute[]
  readonly services: Services
  /** Waits until changes that other instances have confirmed are known here. Never rejects. Absent for a single instance. */
  readonly current?: () => Promise<void>
  /** @throws AppError unauthorized or token_expired */
  readonly authenticate: (head: RequestHead) => Caller
  /** Counts one request. @throws AppError rate_limited */
  readonly consume: (limit: LimitName, subject: LimitSubject) => Promise<void>
  readonly mayUseCookies: MayUseCookies
  /** Called for each user whose role or origin does not permit a route. */
  readonly onRefused?: (
    route: ApiRoute,
    caller: Caller,
    refused: { readonly head: RequestHead; readonly error: AppError },
  ) => void
  /** Tests set it: a reply that does not fit its schema becomes internal_error. */
  readonly checkReplies?: boolean
}

interface CompiledRoute {
  readonly route: ApiRoute
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

export function createApi(options: ApiOptions): HttpRoute[] {
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

function compile(
  route: ApiRoute,
  validator: Validator,
  { uws, checkReplies = false }: ApiOptions,
): CompiledRoute {
  return {
    route,
    query: validator.texts('query', route.query),
    params: route.params === null ? null : validator.texts('path', route.params),
    body: toBodyParser(route, validator, uws),
    checkReply: checkReplies ? toReplyCheck(route, validator) : () => undefined,
  }
}

/** Decides synchronously unless the route has a limit or there are other instances. */
function admit(
  compiled: CompiledRoute,
  options: ApiOptions,
  head: RequestHead,
): Admission | Promise<Admission> {
  const { limit, isInstanceLocal } = compiled.route
  const mayBeStale = options.current !== undefined && isInstanceLocal !== true
  if (limit !== 'none' || mayBeStale) return admitLater(compiled, options, head)
  const caller = checkCaller(compiled.route, options, head)
  if (caller?.isToken === true) return admitToken(compiled, options, head, caller)
  return toAdmission(compiled, options, caller)
}

async function admitToken(
  compiled: CompiledRoute,
  options: ApiOptions,
  { ip }: RequestHead,
  caller: Caller,
): Promise<Admission> {
  await options.consume('api_token_limit', { address: ip, userId: caller.userId })
  return toAdmission(compiled, options, caller)
}

async function admitLater(
  compiled: CompiledRoute,
  options: ApiOptions,
  head: RequestHead,
): Promise<Admission> {
  const { limit, role } = compiled.route
  try {
    if (limit !== 'none' && role === 'public') await options.consume(limit, { address: head.ip })
  } catch (error) {
    return toLimited(compiled.route, options.services, error)
  }
  await options.current?.()
  const caller = checkCaller(compiled.route, options, head)
  if (limit !== 'none' && role !== 'public' && caller !== null)
    await options.consume(limit, { address: head.ip, userId: caller.userId })
  if (caller?.isToken === true) return await admitToken(compiled, options, head, caller)
  return toAdmission(compiled, options, caller)
}

/** @throws the error unless the route has a reply of its own */
function toLimited(route: ApiRoute, services: Services, error: unknown): Admission {
  if (route.onLimited === undefined || !(error instanceof AppError)) throw error
  const reply = toReply(route, route.onLimited(error, services))
  return { kind: 'admitted', handle: () => reply }
}

const toAdmission = (
  compiled: CompiledRoute,
  options: ApiOptions,
  caller: Caller | null,
): Admission => ({
  kind: 'admitted',
  handle: (request) =>
    readFraming(request.headers).kind === 'none'
      ? answer(compiled, options.services, caller, request)
      : answerLate(compiled, options, request),
})

/**
 * Checks the caller again after the body has arrived. That may take minutes, in which the caller
 * may have lost the session or the role.
 */
function answerLate(
  compiled: CompiledRoute,
  options: ApiOptions,
  request: HttpRequest,
): Reply | Promise<Reply> {
  const late = (): Reply | Promise<Reply> =>
    answer(compiled, options.services, checkCaller(compiled.route, options, request), request)
  return options.current === undefined ? late() : options.current().then(late)
}

/** @returns null on a public route that is called without a valid token */
function checkCaller(route: ApiRoute, options: ApiOptions, head: RequestHead): Caller | null {
  const caller = findCaller(route.role, options, head)
  try {
    if (caller !== null && route.role !== 'public') {
      checkRole(route.role, caller)
      checkToken(route, caller)
      if (caller.requiredAction !== null && route.isOpenBeforeRequiredAction !== true)
        throw unfulfilled(caller.requiredAction)
    }
    checkOrigin(route, caller, options, head)
  } catch (error) {
    if (caller !== null && error instanceof AppError)
      options.onRefused?.(route, caller, { head, error })
    throw error
  }
  return caller
}

function findCaller(
  role: Role | 'public',
  { authenticate }: ApiOptions,
  head: RequestHead,
): Caller | null {
  try {
    const caller = authenticate(head)
    // On public routes, authenticated callers see details of the whole service, so a caller limited
    // to sources counts as anonymous.
    return role === 'public' && caller.sources !== null ? null : caller
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

function checkToken({ tokens }: ApiRoute, { isToken, sources }: Caller): void {
  if (isToken && tokens === 'none')
    throw new AppError('forbidden', 'this is for users, not for API tokens')
  if (sources !== null && tokens !== 'limited')
    throw new AppError(
      'forbidden',
      "this can't be limited to sources, as the API token is: use one that may read all sources",
    )
}

function checkOrigin(
  { method }: ApiRoute,
  principal: Caller | null,
  { mayUseCookies }: ApiOptions,
  { headers }: RequestHead,
): void {
  if (method === 'get' || principal?.via === 'bearer') return
  if (headers.first('cookie') === undefined || mayUseCookies(headers)) return
  throw new AppError('forbidden', 'the origin is not allowed')
}

/** Synchronous when the handler is, as are most handlers that answer from memory. */
function answer(
  { route, query, params, body, checkReply }: CompiledRoute,
  services: Services,
  principal: Caller | null,
  request: HttpRequest,
): Reply | Promise<Reply> {
  const errors: FieldError[] = []
  const input = toInput(request, principal, {
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
  const result = ask(route, input, services)
  return result instanceof Promise ? result.then(finish) : finish(result)
}

/**
 * Runs a handler that queries ClickHouse, when the user's limit allows it. A client that
 * disconnected while it waited gets no reply.
 */
function ask(route: ApiRoute, input: CheckedInput, services: Services): unknown {
  const { question } = route
  const { principal } = input
  if (question === undefined || principal === null) return route.handle(input, services)
  return services.questions(question, principal.userId, async () => {
    input.signal.throwIfAborted()
    const work = (): unknown => route.handle(input, services)
    const asked = wantsPartial(route, input) ? () => handlePartly(work) : work
    return await handleCold(asked, services.retention.cold.untilMs())
  })
}

const wantsPartial = (route: ApiRoute, { query }: CheckedInput): boolean =>
  mayBePartial(route) &&
  typeof query === 'object' &&
  query !== null &&
  'partial' in query &&
  query.partial === true

/** Runs a handler and names the shards whose rows the reply lacks. */
async function handlePartly(work: () => unknown): Promise<unknown> {
  const { answer: whole, missing } = await answerPartly(work)
  return missing.length === 0 ? whole : withHeader(whole, 'X-Missing-Shards', missing.join(', '))
}

/** Runs a handler and says whether the reply includes events of cold storage. */
async function handleCold(work: () => unknown, untilMs: number): Promise<unknown> {
  if (untilMs === 0) return await work()
  const { answer: whole, isCold } = await answerNotingCold(work)
  return isCold ? withHeader(whole, COLD_HEADER, new Date(untilMs).toISOString()) : whole
}

function withHeader(whole: unknown, name: string, value: string): RouteReply<unknown> {
  const { body, ...extras } = whole instanceof RouteReply ? whole : new RouteReply(whole)
  return new RouteReply(body, {
    headers: { ...extras.headers, [name]: value },
    cookies: extras.cookies,
    ...(extras.status === null ? {} : { status: extras.status }),
  })
}

const toInput = (
  head: RequestHead,
  principal: Caller | null,
  { params, query, body }: Pick<CheckedInput, 'params' | 'query' | 'body'>,
): CheckedInput => ({
  params,
  query,
  body,
  principal,
  head,
  // The signal is created on first use, because most handlers use none. It is an own property, so
  // that copies of the object have it.
  get signal() {
    return head.signal
  },
})

const NO_TEXTS = { getAll: (): readonly string[] => [] }

const fromRecord = (record: Readonly<Record<string, string>>) => ({
  getAll: (name: string): string[] => {
    const value = Object.hasOwn(record, name) ? record[name] : undefined
    return value === undefined ? [] : [value]
  },
})

function toReply(route: ApiRoute, full: RouteReply<unknown>): Reply {
  const status = full.status ?? route.status
  const { headers, cookies, body } = full
  if (status === 204 || status === 302) return { status, headers, cookies }
  if (body instanceof TypedText)
    return { status, headers: { 'Content-Type': body.type, ...headers }, cookies, body: body.text }
  if (body instanceof JsonText) return { status, headers, cookies, jsonText: body.text }
  if (body instanceof ByteStream)
    return {
      status,
      headers: { 'Content-Type': body.type, ...headers },
      cookies,
      stream: body.chunks,
    }
  if (route.produces === undefined) return { status, headers, cookies, json: body }
  const typed = { 'Content-Type': [route.produces].flat()[0] ?? '', ...headers }
  return { status, headers: typed, cookies, body: String(body) }
}

function toReplyCheck(
  { id, reply, status, produces }: ApiRoute,
  validator: Validator,
): (value: unknown) => void {
  if (status === 204 || status === 302 || produces !== undefined) return () => undefined
  const check = validator.json(reply)
  return (value) => {
    if (value instanceof TypedText) return
    const errors: FieldError[] = []
    // The schema describes the JSON form, in which undefined fields are absent.
    check(JSON.parse(value instanceof JsonText ? value.text : JSON.stringify(value)), errors)
    if (errors.length === 0) return
    throw new Error(`bug: reply of ${id} breaks its schema: ${JSON.stringify(errors)}`)
  }
}

function toBodyParser({ body }: ApiRoute, validator: Validator, uws: Uws): BodyParser {
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

/** @returns undefined, with an entry in `errors`, when the body is not JSON */
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
/** With the `u` flag a pair is one character, so only a lone half matches. */
const LONE = /\p{Surrogate}/u

/** The error of a text with a lone surrogate. ClickHouse stores UTF-8, which has none, so the text would be read back changed. */
class LoneSurrogate extends Error {
  override readonly message = 'a text has a lone surrogate'
}

function refuseLone(key: string, value: unknown): unknown {
  if (LONE.test(key) || (typeof value === 'string' && LONE.test(value))) throw new LoneSurrogate()
  return value
}

/** The most bytes of a text field of a form; such fields hold names, types and ids. */
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
