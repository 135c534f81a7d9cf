/**
 * Every error that clients receive, by code. `retry` means that the same request may succeed later.
 */
export const ERRORS = {
  bad_request: { status: 400, retry: false },
  invalid_payload: { status: 400, retry: false },
  unauthorized: { status: 401, retry: false },
  token_expired: { status: 401, retry: false },
  invalid_credentials: { status: 401, retry: false },
  invalid_refresh_token: { status: 401, retry: false },
  invalid_user: { status: 401, retry: false },
  second_factor_required: { status: 401, retry: false },
  invalid_code: { status: 401, retry: false },
  code_reused: { status: 401, retry: false },
  oidc_failed: { status: 401, retry: false },
  invalid_signature: { status: 401, retry: false },
  forbidden: { status: 403, retry: false },
  account_disabled: { status: 403, retry: false },
  role_missing: { status: 403, retry: false },
  password_login_off: { status: 403, retry: false },
  password_expired: { status: 403, retry: false },
  password_change_required: { status: 403, retry: false },
  second_factor_missing: { status: 403, retry: false },
  source_not_allowed: { status: 403, retry: false },
  not_found: { status: 404, retry: false },
  route_not_found: { status: 404, retry: false },
  method_not_allowed: { status: 405, retry: false },
  request_timeout: { status: 408, retry: true },
  source_already_exists: { status: 409, retry: false },
  application_name_conflict: { status: 409, retry: false },
  count_mismatch: { status: 409, retry: false },
  source_disabled: { status: 409, retry: false },
  invalid_transition: { status: 409, retry: false },
  email_conflict: { status: 409, retry: false },
  last_superadmin: { status: 409, retry: false },
  second_factor_exists: { status: 409, retry: false },
  file_too_large: { status: 413, retry: false },
  body_too_large: { status: 413, retry: false },
  unsupported_media_type: { status: 415, retry: false },
  validation_error: { status: 422, retry: false },
  invalid_cursor: { status: 422, retry: false },
  file_parse_error: { status: 422, retry: false },
  empty_file: { status: 422, retry: false },
  upgrade_required: { status: 426, retry: false },
  rate_limited: { status: 429, retry: true },
  overloaded: { status: 429, retry: true },
  headers_too_large: { status: 431, retry: false },
  internal_error: { status: 500, retry: false },
  dependency_unavailable: { status: 503, retry: true },
} as const satisfies Record<string, { readonly status: number; readonly retry: boolean }>

export type ErrorCode = keyof typeof ERRORS

interface ErrorOptions {
  /** Sent to the client; without secrets and uploaded content. */
  readonly details?: Readonly<Record<string, unknown>>
  /** Whole seconds, at least 1; sent as `Retry-After`. */
  readonly retryAfterS?: number
  readonly cause?: unknown
}

/** An error that is sent to the client; any other error becomes `internal_error`. */
export class AppError extends Error {
  override readonly name = 'AppError'
  readonly code: ErrorCode
  readonly details: Readonly<Record<string, unknown>>
  readonly retryAfterS: number | null

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.details = options.details ?? {}
    this.retryAfterS = options.retryAfterS ?? null
  }

  get status(): number {
    return ERRORS[this.code].status
  }
}

/** The one body shape of every error reply. */
export interface ErrorEnvelope {
  readonly detail: {
    readonly message: string
    readonly code: ErrorCode
    readonly details: Readonly<Record<string, unknown>>
  }
}

export const toEnvelope = (error: AppError): ErrorEnvelope => ({
  detail: { message: error.message, code: error.code, details: error.details },
})
