import type { AppError } from '../model/errors.js'
import type { BodyChunks } from './body-stream.js'
import type { HeaderBag, HttpRequest, RequestHead } from './request.js'
import type { Reply } from './reply.js'
import type { Routable } from './router.js'

/** The decision on a request after its head was read. */
export type Admission =
  | { readonly kind: 'refused'; readonly reply: Reply }
  | {
      readonly kind: 'admitted'
      /** Called once the body is complete. */
      readonly handle: (request: HttpRequest) => Reply | Promise<Reply>
    }
  | {
      /** For a request that `isStreamed` accepts. */
      readonly kind: 'streamed'
      /** Called when the body begins. */
      readonly handle: (head: RequestHead, body: BodyChunks) => Promise<Reply>
    }

/** A route of the server. Its functions may throw an AppError instead of returning. */
export interface HttpRoute extends Routable {
  /** Name of the route in logs and metrics. */
  readonly id: string
  /** Largest body; 0 when the route takes none, where a small one is read and ignored. */
  readonly bodyBytes: number
  /** Whether the body is passed on while it arrives, whatever its length; `bodyBytes` does not apply. Default: never. */
  readonly isStreamed?: (headers: HeaderBag) => boolean
  /** The error for a larger body. Default: `body_too_large`. */
  readonly oversizeCode?: 'body_too_large' | 'file_too_large'
  /**
   * Whether the sender is authenticated by the body. Such bodies have a budget of their own, so
   * that unauthenticated clients cannot exhaust that of the others.
   */
  readonly isAuthenticatedByBody?: true
  /** Whether the route uses the client's address only to refuse a request, so that it is not copied otherwise. */
  readonly isAddressless?: true
  /** Writes errors in a protocol's own form. Default: the one body shape of the API. */
  readonly toErrorReply?: (error: AppError, head: RequestHead) => Reply
  /** Replaces the server's deadline for handlers. */
  readonly handlerTimeoutMs?: number
  /**
   * Decides on the head alone. A synchronous decision comes before any byte of the body is stored;
   * while a promise is pending the body is collected, up to `bodyBytes`.
   */
  readonly admit: (head: RequestHead) => Admission | Promise<Admission>
}

interface SimpleRoute extends Omit<HttpRoute, 'admit'> {
  /** Returns a reply to refuse the request before its body is read, else null. */
  readonly beforeBody?: (head: RequestHead) => Reply | null | Promise<Reply | null>
  readonly handle: (request: HttpRequest) => Reply | Promise<Reply>
}

/** Builds a route whose handler needs nothing from `beforeBody`. */
export function httpRoute(route: SimpleRoute): HttpRoute {
  const { beforeBody, handle, ...rest } = route
  const admitted: Admission = { kind: 'admitted', handle }
  if (beforeBody === undefined) return { ...rest, admit: () => admitted }
  const toAdmission = (reply: Reply | null): Admission =>
    reply === null ? admitted : { kind: 'refused', reply }
  return {
    ...rest,
    admit(head) {
      const refusal = beforeBody(head)
      return refusal instanceof Promise ? refusal.then(toAdmission) : toAdmission(refusal)
    },
  }
}
