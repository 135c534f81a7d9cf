/** The service's error for a refused request. */
export interface Fault {
  readonly in?: string
  readonly path?: string
  readonly message: string
  readonly position?: number
  readonly length?: number
  readonly suggestion?: string | null
}

export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly faults: readonly Fault[]
  readonly retryAfterS: number | null

  constructor(status: number, body: unknown, retryAfter: string | null) {
    const { message, code, faults } = readEnvelope(body)
    super(message === '' ? `The service answered with status ${status}.` : message)
    this.status = status
    this.code = code
    this.faults = faults
    this.retryAfterS = retryAfter === null ? null : Number(retryAfter)
  }
}

interface Envelope {
  readonly detail?: {
    readonly message?: string
    readonly code?: string
    readonly details?: { readonly errors?: readonly Fault[] }
  }
}

function readEnvelope(body: unknown) {
  const { detail = {} } = (body ?? {}) as Envelope // the one envelope of all errors
  return {
    message: detail.message ?? '',
    code: detail.code ?? '',
    faults: detail.details?.errors ?? [],
  }
}

export type Params = Readonly<Record<string, string | number | boolean | null | undefined>>

export function pathWith(path: string, params: Params): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(params))
    if (value !== null && value !== undefined && value !== '') query.set(name, String(value))
  const text = query.toString()
  return text === '' ? path : `${path}?${text}`
}

interface Call {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly json?: unknown
  readonly form?: FormData
  readonly signal?: AbortSignal
}

let onLoggedOut: () => void = () => undefined
/** Called when neither cookie is valid any longer. */
export const whenLoggedOut = (listener: () => void): void => {
  onLoggedOut = listener
}

let onActionRequired: (code: string) => void = () => undefined
/** Called when the user must first change the password or add a second factor. */
export const whenActionRequired = (listener: (code: string) => void): void => {
  onActionRequired = listener
}

/** A renewal of the access token, which all requests share that find it expired. */
let renewal: Promise<boolean> | null = null

function renew(): Promise<boolean> {
  renewal ??= fetch('/api/auth/refresh', { method: 'POST', credentials: 'same-origin' })
    .then(({ ok }) => ok)
    .catch(() => false)
    .finally(() => {
      renewal = null
    })
  return renewal
}

const send = (path: string, { method = 'GET', json, form, signal }: Call): Promise<Response> =>
  fetch(path, {
    method,
    credentials: 'same-origin',
    ...(signal === undefined ? {} : { signal }),
    ...(json === undefined
      ? {}
      : { body: JSON.stringify(json), headers: { 'Content-Type': 'application/json' } }),
    ...(form === undefined ? {} : { body: form }),
  })

/** The path of a request whose 401 does not mean that the session has ended. */
const isLogIn = (path: string): boolean => path.startsWith('/api/auth/') && path !== '/api/auth/me'

async function bodyOf(reply: Response): Promise<unknown> {
  const text = await reply.text()
  const isJson = reply.headers.get('content-type')?.includes('json') ?? false
  return isJson && text !== '' ? JSON.parse(text) : null
}

/**
 * Sends a request with the session's cookies, which scripts cannot read.
 *
 * @throws ApiError for a status other than 2xx; TypeError when the service does not answer
 */
export async function ask(path: string, options: Call = {}): Promise<Response> {
  let reply = await send(path, options)
  const isExpired = reply.status === 401 && !isLogIn(path)
  if (isExpired && (await renew())) reply = await send(path, options)
  if (reply.ok) return reply
  if (isExpired && reply.status === 401) onLoggedOut()
  const error = new ApiError(reply.status, await bodyOf(reply), reply.headers.get('retry-after'))
  if (isRequiredAction(error.code)) onActionRequired(error.code)
  throw error
}

/** Sends a request and returns the body of the reply. */
export const call = async <T>(path: string, options?: Call): Promise<T> =>
  (await bodyOf(await ask(path, options))) as T // the service's schemas hold it to this

const isRequiredAction = (code: string): boolean =>
  code === 'password_change_required' || code === 'second_factor_missing'

/** The message of an error for the user. */
export function messageOf(error: unknown): string {
  if (error instanceof ApiError) {
    const [fault] = error.faults
    const said = fault?.message ?? error.message
    const wait = error.retryAfterS === null ? '' : `. Try again in ${error.retryAfterS} s.`
    return said.charAt(0).toUpperCase() + said.slice(1) + wait
  }
  return 'The service can’t be reached.'
}

export const isAbort = (error: unknown): boolean =>
  error instanceof DOMException && error.name === 'AbortError'
