import { OptionalKind, Type } from '@sinclair/typebox'
import type { Static, TObject, TOptional, TSchema } from '@sinclair/typebox'
import type { Cookie } from '../http/cookies.js'
import type { RequestHead } from '../http/request.js'
import type { RouteMethod } from '../http/router.js'
import type { MultipartFile } from '../http/multipart.js'
import type { AppError, ErrorCode } from '../model/errors.js'
import type { LimitName } from './auth/limits.js'
import type { Role } from '../model/roles.js'
import type { Principal } from './auth/sessions.js'
import type { QuestionKind } from './questions.js'
import type { Services } from './services.js'

/** The caller of a request. The origin of requests with a cookie is checked, because browsers send cookies by themselves. */
export interface Caller extends Principal {
  readonly via: 'bearer' | 'cookie'
}

type Access = Role | 'public'
type SuccessStatus = 200 | 201 | 202 | 204 | 302

/** A multipart/form-data body. */
export interface MultipartBody<F extends TObject = TObject> {
  readonly kind: 'multipart'
  /** Text fields, coerced like a query string. */
  readonly fields: F
  /** Names of the file fields; each must occur exactly once. */
  readonly files: readonly string[]
  /** Larger files get `file_too_large`. */
  readonly fileBytes: number
}

export const multipart = <F extends TObject>(
  body: Omit<MultipartBody<F>, 'kind'>,
): MultipartBody<F> => ({ kind: 'multipart', ...body })

type BodySchema = TSchema | MultipartBody | null

type BodyOf<B extends BodySchema> =
  B extends MultipartBody<infer F>
    ? {
        readonly fields: Static<F>
        readonly files: Readonly<Record<string, MultipartFile>>
      }
    : B extends TOptional<infer S>
      ? Static<S> | null
      : B extends TSchema
        ? Static<B>
        : null

/** The validated input of a handler, without any part of the socket. */
interface RouteInput<Q extends TObject, P extends TObject, B extends BodySchema, A extends Access> {
  readonly query: Static<Q>
  readonly params: Static<P>
  readonly body: BodyOf<B>
  /** Null only on a public route that is called without a valid token. */
  readonly principal: A extends 'public' ? Caller | null : Caller
  readonly head: RequestHead
  /** Aborted when the client disconnects or the deadline passes. */
  readonly signal: AbortSignal
}

/** A reply with a status, headers or cookies of its own. */
export class RouteReply<T> {
  readonly body: T
  readonly status: number | null
  readonly headers: Readonly<Record<string, string>>
  readonly cookies: readonly Cookie[]
  readonly actorId: string | null
  readonly outcome: string | null

  constructor(body: T, extras: ReplyExtras = {}) {
    this.body = body
    this.actorId = extras.actorId ?? null
    this.outcome = extras.outcome ?? null
    this.status = extras.status ?? null
    this.headers = extras.headers ?? {}
    this.cookies = extras.cookies ?? []
  }
}

/** A reply body that is JSON already; it must fit the route's schema. */
export class JsonText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** A reply body of another type than JSON. */
export class TypedText {
  readonly type: string
  readonly text: string

  constructor(type: string, text: string) {
    this.type = type
    this.text = text
  }
}

/** A reply that is streamed as the client reads it (`http/reply.ts`). */
export class ByteStream {
  readonly type: string
  readonly chunks: AsyncIterator<Uint8Array>

  /** @param type the media type, one of those that the route produces */
  constructor(type: string, chunks: AsyncIterator<Uint8Array>) {
    this.type = type
    this.chunks = chunks
  }
}

/** Within the deadline of handlers (`http/server.ts`). */
const FIRST_BYTES_MS = 10_000

/**
 * Waits for the first bytes of a stream, so that an earlier error becomes the reply. A stream that
 * has none for long begins without them, because its source may take longer than a handler may.
 *
 * @returns the whole stream; the source is closed even when nobody reads it
 */
export async function startStream(
  source: AsyncGenerator<Uint8Array>,
  waitMs = FIRST_BYTES_MS,
): Promise<AsyncIterator<Uint8Array>> {
  let first: Promise<IteratorResult<Uint8Array>> | null = source.next()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, waitMs)
  })
  await Promise.race([first, late]).finally(() => clearTimeout(timer))
  // The client may disconnect before it is awaited.
  first.catch(() => undefined)
  return {
    next: async () => {
      const result = await (first ?? source.next())
      first = null
      return result
    },
    return: () => source.return(undefined),
  }
}

interface ReplyExtras {
  /** Replaces the route's status; must be one of its `alsoStatuses`. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly cookies?: readonly Cookie[]
  /** The user that a login has authenticated, for the audit trail. */
  readonly actorId?: string
  /** The error, for the audit trail, when the reply expresses it in another form. */
  readonly outcome?: string
}

interface RouteFacts {
  /** Unique camelCase name of the route in metrics, the audit trail and OpenAPI. */
  readonly id: string
  readonly method: Lowercase<Exclude<RouteMethod, 'OPTIONS'>>
  readonly path: string
  readonly summary: string
  readonly description?: string
  /** Group in the API reference. Default: the first path segment below /api. */
  readonly tag?: string
  /** The rate limit that each request counts against. */
  readonly limit: 'none' | LimitName
  /** Replaces the reply with an error when the limit refuses a request, on addresses that a browser opens. */
  readonly onLimited?: (error: AppError, services: Services) => RouteReply<null>
  /** The largest body; 0 for none. */
  readonly bodyBytes: number
  readonly status: SuccessStatus
  /** Further statuses whose body has the schema `reply`. */
  readonly alsoStatuses?: readonly number[]
  /** Codes that `handle` may throw. OpenAPI adds those that role, limit and schemas imply. */
  readonly errors: readonly ErrorCode[]
  /** Another media type of the reply, which a client requests by `Accept`. */
  readonly alsoProduces?: { readonly type: string; readonly description: string }
  /** Media types of a reply that is text instead of JSON. */
  readonly produces?: string | readonly [string, ...string[]]
  /** Whether the handler queries ClickHouse, which counts towards the user's limit of running queries. */
  readonly question?: QuestionKind
  /** Replaces the server's deadline for handlers. */
  readonly handlerTimeoutMs?: number
  /** Whether the route is open to a user who must change the password or turn on a second factor first. */
  readonly isOpenBeforeRequiredAction?: true
  /**
   * Which API tokens the route accepts: `none`, or `limited` for all, including tokens that are
   * limited to sources, because the handler reads nothing beyond `principal.sources`. Absent:
   * tokens that are not limited.
   */
  readonly tokens?: 'none' | 'limited'
  /** Whether the reply describes this instance only, so that the request need not wait for the change log. */
  readonly isInstanceLocal?: true
  readonly examples?: { readonly body?: unknown; readonly reply?: unknown }
}

interface RouteDefinition<
  Q extends TObject,
  P extends TObject,
  B extends BodySchema,
  R extends TSchema,
  A extends Access,
> extends Omit<RouteFacts, 'limit' | 'bodyBytes' | 'status'> {
  readonly role: A
  /** Default: none. */
  readonly limit?: RouteFacts['limit']
  /** Default: no parameters. */
  readonly query?: Q
  readonly params?: P
  /** Default: no body. */
  readonly body?: B
  /** The largest body of a route that has one. */
  readonly bodyBytes?: number
  /** Default: 200. */
  readonly status?: SuccessStatus
  readonly reply: R
  readonly handle: (
    input: RouteInput<Q, P, B, A>,
    services: Services,
  ) => HandlerResult<Static<R>> | Promise<HandlerResult<Static<R>>>
}

type HandlerResult<T> = T | RouteReply<T | TypedText | ByteStream> | JsonText

/** A route without the types of its input, for the API and the OpenAPI document. */
export interface ApiRoute extends RouteFacts {
  readonly role: Access
  readonly query: TObject
  readonly params: TObject | null
  readonly body: BodySchema
  readonly reply: TSchema
  readonly handle: (input: CheckedInput, services: Services) => unknown
}

export interface CheckedInput {
  readonly query: unknown
  readonly params: unknown
  readonly body: unknown
  readonly principal: Caller | null
  readonly head: RequestHead
  readonly signal: AbortSignal
}

/** Declares a route. @throws Error when path, parameters and body do not fit together */
export function route<
  R extends TSchema,
  A extends Access,
  Q extends TObject = TObject,
  P extends TObject = TObject,
  B extends BodySchema = null,
>(definition: RouteDefinition<Q, P, B, R, A>): ApiRoute {
  const { handle, query = Type.Object({}), ...rest } = definition
  const facts = {
    limit: 'none' as const,
    params: null,
    body: null,
    bodyBytes: 0,
    status: 200 as const,
    ...rest,
  }
  checkFacts(facts)
  return {
    ...facts,
    query: mayBePartial(facts) ? withPartial(query) : query,
    // Ajv has checked the input against the schemas that these types come from.
    handle: (input, services) => handle(input as RouteInput<Q, P, B, A>, services),
  }
}

/** The paths of queries about events and dead letters, which are on all shards of a cluster. */
const OF_ALL_SHARDS = /^\/api\/(?:logs|analytics|monitoring\/dead-letters)\b/

export const mayBePartial = ({ method, path, question }: RouteFacts): boolean =>
  method === 'get' && question !== undefined && OF_ALL_SHARDS.test(path)

/** A header of replies for which events in cold storage were read. */
export const COLD_HEADER = 'X-Cold-Before'

export const mayReadCold = ({ path, question }: RouteFacts): boolean =>
  question !== undefined && /^\/api\/logs\b/.test(path)

const Partial = Type.Optional(
  Type.Boolean({
    description:
      'answer without the shards of a ClickHouse cluster that do not answer; the header `X-Missing-Shards` names them',
  }),
)

const withPartial = (query: TObject): TObject => ({
  ...query,
  properties: { ...query.properties, partial: Partial },
})

interface Checkable extends RouteFacts {
  readonly role: Access
  readonly params: TObject | null
  readonly body: BodySchema
}

function checkFacts({ id, path, params, body, bodyBytes, question, role }: Checkable): void {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1])
  const declared = Object.keys(params?.properties ?? {})
  if (inPath.join() !== declared.join()) {
    throw new Error(
      `bug: route ${id} has parameters ${inPath.join()} but declares ${declared.join()}`,
    )
  }
  if (question !== undefined && role === 'public')
    throw new Error(`bug: route ${id} asks questions for nobody`)
  if ((body === null) !== (bodyBytes === 0)) {
    throw new Error(`bug: route ${id} has bodyBytes ${bodyBytes}, which does not fit its body`)
  }
}

export const isMultipart = (body: BodySchema): body is MultipartBody =>
  body !== null && body['kind'] === 'multipart'

export const isOptional = (schema: TSchema): boolean => OptionalKind in schema
