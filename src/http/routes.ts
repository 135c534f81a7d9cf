import type { HttpRequest, RequestHead } from './request.js'
import type { Reply } from './reply.js'
import type { Routable } from './router.js'

/** What becomes of a request whose head has been seen. */
export type Admission =
  | { readonly kind: 'refused'; readonly reply: Reply }
  | {
      readonly kind: 'admitted'
      /** takes the same request, its body read */
      readonly handle: (request: HttpRequest) => Reply | Promise<Reply>
    }

/** A path the server answers. Both functions may throw an AppError instead of returning. */
export interface HttpRoute extends Routable {
  /** names the route in logs and metrics */
  readonly id: string
  /** largest body; 0 when the route takes none (a small one is then read and ignored) */
  readonly bodyBytes: number
  /** the error for a larger body; `body_too_large` when absent */
  readonly oversizeCode?: 'body_too_large' | 'file_too_large'
  /**
   * Who sends is known only when the body is there: such bodies are held in room of their own, so that nobody
   * unknown takes that of all others.
   */
  readonly isOpen?: true
  /** Nothing of the route asks for the client's address, which would have to be copied for each request. */
  readonly isAddressless?: true
  /** overrides the server's deadline for the handler; ms */
  readonly handlerTimeoutMs?: number
  /**
   * Decides on the head alone. A synchronous answer comes before any byte of the body is kept;
   * while a promise is pending the body is already collected, within `bodyBytes`.
   */
  readonly admit: (head: RequestHead) => Admission | Promise<Admission>
}

interface SimpleRoute extends Omit<HttpRoute, 'admit'> {
  /** returns a reply to refuse the request before its body is read, null to go on */
  readonly beforeBody?: (head: RequestHead) => Reply | null | Promise<Reply | null>
  readonly handle: (request: HttpRequest) => Reply | Promise<Reply>
}

/** A route that carries nothing from its check of the head over to its handler. */
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
