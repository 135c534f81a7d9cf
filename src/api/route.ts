import { OptionalKind } from '@sinclair/typebox'
import type { Static, TObject, TOptional, TSchema } from '@sinclair/typebox'
import type { Cookie } from '../http/cookies.js'
import type { RequestHead } from '../http/request.js'
import type { RouteMethod } from '../http/router.js'
import type { MultipartFile } from '../http/multipart.js'
import type { ErrorCode } from '../model/errors.js'
import type { LimitName } from './auth/limits.js'
import type { Role } from '../model/roles.js'
import type { Principal } from './auth/sessions.js'

/** Who calls, and where the token came from: browsers send a cookie on their own. */
export interface Caller extends Principal {
  readonly via: 'bearer' | 'cookie'
}

type Access = Role | 'public'
type SuccessStatus = 200 | 201 | 202 | 204

/** A multipart/form-data body. */
export interface MultipartBody<F extends TObject = TObject> {
  readonly kind: 'multipart'
  /** text fields, coerced like a query string */
  readonly fields: F
  /** names of the file fields, each required once */
  readonly files: readonly string[]
  /** largest file; above it `file_too_large` */
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

/** What a handler works on: checked, and nothing of the socket. */
interface RouteInput<Q extends TObject, P extends TObject, B extends BodySchema, A extends Access> {
  readonly query: Static<Q>
  readonly params: Static<P>
  readonly body: BodyOf<B>
  /** on a public route null when the caller shows no valid token */
  readonly principal: A extends 'public' ? Caller | null : Caller
  readonly head: RequestHead
  /** aborted when the client leaves or the deadline passes */
  readonly signal: AbortSignal
}

/** A reply that needs more than its body. */
export class RouteReply<T> {
  readonly body: T
  readonly status: number | null
  readonly headers: Readonly<Record<string, string>>
  readonly cookies: readonly Cookie[]
  readonly actorId: string | null

  constructor(body: T, extras: ReplyExtras = {}) {
    this.body = body
    this.actorId = extras.actorId ?? null
    this.status = extras.status ?? null
    this.headers = extras.headers ?? {}
    this.cookies = extras.cookies ?? []
  }
}

/** A body that is JSON already, of the route's schema. */
export class JsonText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

interface ReplyExtras {
  /** instead of the route's own; must be among its `alsoStatuses` */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly cookies?: readonly Cookie[]
  /** the user who is known from now on, for the audit trail */
  readonly actorId?: string
}

interface RouteFacts {
  /** names the route in metrics, logs and OpenAPI; camelCase, unique */
  readonly id: string
  readonly method: Lowercase<RouteMethod>
  readonly path: string
  readonly summary: string
  readonly description?: string
  /** heading in the docs; the first path segment below /api when absent */
  readonly tag?: string
  /** counted when the caller is known: what the limit counts by must be known then */
  readonly limit: 'none' | LimitName
  /** largest body; 0 when `body` is null */
  readonly bodyBytes: number
  readonly status: SuccessStatus
  /** further statuses that carry the reply's schema */
  readonly alsoStatuses?: readonly number[]
  /** what `handle` may throw; those implied by role, limit and schemas are added by themselves */
  readonly errors: readonly ErrorCode[]
  /** media type of a reply that is text and not JSON */
  readonly produces?: string
  /** overrides the server's deadline; ms */
  readonly handlerTimeoutMs?: number
  /** it tells of this instance alone, and waits for nothing that others changed */
  readonly isOfInstance?: true
  readonly examples?: { readonly body?: unknown; readonly reply?: unknown }
}

interface RouteDefinition<
  Services,
  Q extends TObject,
  P extends TObject,
  B extends BodySchema,
  R extends TSchema,
  A extends Access,
> extends RouteFacts {
  readonly role: A
  readonly query: Q
  readonly params?: P
  readonly body: B
  readonly reply: R
  readonly handle: (
    input: RouteInput<Q, P, B, A>,
    services: Services,
  ) => HandlerResult<Static<R>> | Promise<HandlerResult<Static<R>>>
}

type HandlerResult<T> = T | RouteReply<T> | JsonText

/** A route whose input types are behind it; what the API and the OpenAPI document work on. */
export interface ApiRoute<Services> extends RouteFacts {
  readonly role: Access
  readonly query: TObject
  readonly params: TObject | null
  readonly body: BodySchema
  readonly reply: TSchema
  readonly handle: (input: CheckedInput, services: Services) => unknown
}

/** Input that has passed the route's schemas. */
export interface CheckedInput {
  readonly query: unknown
  readonly params: unknown
  readonly body: unknown
  readonly principal: Caller | null
  readonly head: RequestHead
  readonly signal: AbortSignal
}

/** Gives the `route` function for one set of services: `const route = routeFor<Services>()`. */
export function routeFor<Services>() {
  return function route<
    Q extends TObject,
    P extends TObject,
    B extends BodySchema,
    R extends TSchema,
    A extends Access,
  >(definition: RouteDefinition<Services, Q, P, B, R, A>): ApiRoute<Services> {
    checkDefinition(definition)
    const { handle, params = null, ...rest } = definition
    return {
      ...rest,
      params,
      // the schemas have checked the input against the very types named here
      handle: (input, services) => handle(input as RouteInput<Q, P, B, A>, services),
    }
  }
}

interface Checkable extends RouteFacts {
  readonly params?: TObject
  readonly body: BodySchema
}

function checkDefinition({ id, path, params, body, bodyBytes }: Checkable): void {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1])
  const declared = Object.keys(params?.properties ?? {})
  if (inPath.join() !== declared.join()) {
    throw new Error(
      `bug: route ${id} has parameters ${inPath.join()} but declares ${declared.join()}`,
    )
  }
  if ((body === null) !== (bodyBytes === 0)) {
    throw new Error(`bug: route ${id} has bodyBytes ${bodyBytes}, which does not fit its body`)
  }
}

export const isMultipart = (body: BodySchema): body is MultipartBody =>
  body !== null && body['kind'] === 'multipart'

export const isOptional = (schema: TSchema): boolean => OptionalKind in schema
