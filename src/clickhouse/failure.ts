import { ClickHouseError } from '@clickhouse/client'
import { AppError } from '../model/errors.js'

/** An error of a request that ClickHouse refused and would refuse again. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  /** ClickHouse's error number, such as 60. */
  readonly code: number
  /** ClickHouse's name of the error, such as UNKNOWN_TABLE; '' when it gave none. */
  readonly type: string
  /** Whether the rows are at fault, not the statement, the table or the user. */
  readonly isDataError: boolean

  constructor(
    message: string,
    { code, type, isDataError }: Pick<StoreError, 'code' | 'type' | 'isDataError'>,
  ) {
    super(message)
    this.code = code
    this.type = type
    this.isDataError = isDataError
  }
}

/** Whether the rows of an insert are at fault, so that they would be refused again. */
export const isDataError = (error: unknown): boolean =>
  error instanceof StoreError && error.isDataError

/** Whether RE2 can't compile a regular expression of the statement. */
export const isPatternError = (error: unknown): boolean =>
  error instanceof StoreError && error.code === 427

/** The error of a query that took more time or memory than it may. It would take less over a shorter time range. */
class CostlyError extends AppError {}

/** Error codes for groups, rows or bytes of a result beyond the limits of a request. */
const LIMIT_CODES: ReadonlySet<number> = new Set([
  158, // TOO_MANY_ROWS
  191, // SET_SIZE_LIMIT_EXCEEDED
  307, // TOO_MANY_BYTES
  396, // TOO_MANY_ROWS_OR_BYTES
])

/** Error codes for too much time or memory. */
const COST_CODES: ReadonlySet<number> = new Set([
  159, // TIMEOUT_EXCEEDED
  160, // TOO_SLOW
  241, // MEMORY_LIMIT_EXCEEDED
])

/** Whether a query exceeded its limits of time, memory or rows. */
export const isTooCostly = (error: unknown): boolean =>
  error instanceof CostlyError || (error instanceof StoreError && LIMIT_CODES.has(error.code))

/**
 * Error codes after which the request is tried again, because the condition passes or an operator
 * ends it. A wrong password is among them, so that data waits until it is corrected.
 */
const PASSING_CODES: ReadonlySet<number> = new Set([
  76, // CANNOT_OPEN_FILE: out of file descriptors
  164, // READONLY
  173, // CANNOT_ALLOCATE_MEMORY
  198, // DNS_ERROR
  202, // TOO_MANY_SIMULTANEOUS_QUERIES
  203, // NO_FREE_CONNECTION
  209, // SOCKET_TIMEOUT
  210, // NETWORK_ERROR
  225, // NO_ZOOKEEPER
  236, // ABORTED: shutting down
  242, // TABLE_IS_READ_ONLY
  243, // NOT_ENOUGH_SPACE
  252, // TOO_MANY_PARTS
  279, // ALL_CONNECTION_TRIES_FAILED
  285, // TOO_FEW_LIVE_REPLICAS
  286, // UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE
  289, // REPLICA_IS_NOT_IN_QUORUM
  319, // UNKNOWN_STATUS_OF_INSERT
  369, // ALL_REPLICAS_ARE_STALE
  394, // QUERY_WAS_CANCELLED
  425, // SYSTEM_ERROR
  439, // CANNOT_SCHEDULE_TASK
  473, // DEADLOCK_AVOIDED
  516, // AUTHENTICATION_FAILED
  517, // CANNOT_ASSIGN_ALTER
  519, // NO_REMOTE_SHARD_AVAILABLE
  667, // NOT_INITIALIZED
  745, // SERVER_OVERLOADED
  999, // KEEPER_EXCEPTION
  1000, // POCO_EXCEPTION
])

/** Only the content of an insert can cause these errors. */
const DATA_CODES: ReadonlySet<number> = new Set([
  6, // CANNOT_PARSE_TEXT
  26, // CANNOT_PARSE_QUOTED_STRING
  27, // CANNOT_PARSE_INPUT_ASSERTION_FAILED
  32, // ATTEMPT_TO_READ_AFTER_EOF
  33, // CANNOT_READ_ALL_DATA
  38, // CANNOT_PARSE_DATE
  41, // CANNOT_PARSE_DATETIME
  53, // TYPE_MISMATCH
  69, // ARGUMENT_OUT_OF_BOUND
  70, // CANNOT_CONVERT_TYPE
  72, // CANNOT_PARSE_NUMBER
  117, // INCORRECT_DATA
  128, // TOO_LARGE_ARRAY_SIZE
  131, // TOO_LARGE_STRING_SIZE
  190, // SIZES_OF_ARRAYS_DONT_MATCH
  246, // CORRUPTED_DATA
  321, // VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE
  349, // CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
  407, // DECIMAL_OVERFLOW
  467, // CANNOT_PARSE_BOOL
  469, // VIOLATED_CONSTRAINT
  691, // UNKNOWN_ELEMENT_OF_ENUM
])

/** ClickHouse refuses damaged bytes with various codes, but names the step that read them. */
const READING_ROWS = /While executing \w*(?:Native|Format)/

const RETRY_AFTER_S = 2
const DETAIL_CHARS = 300

/**
 * @param action what was tried, without values
 * @param timedOutMs the timeout when it has passed, else null
 * @returns AppError('dependency_unavailable') when trying again may help, StoreError when ClickHouse
 *   refuses, and an error of the program's own code unchanged
 */
export function toStoreFailure(action: string, error: unknown, timedOutMs: number | null): Error {
  if (error instanceof TypeError || error instanceof RangeError) return error
  if (timedOutMs !== null) return costly(`${action}: no answer within ${timedOutMs} ms`)
  if (!(error instanceof ClickHouseError)) return unavailable(`${action}: ${networkReason(error)}`)
  const code = Number(error.code)
  const type = error.type ?? ''
  // A failed mutation has a code of its own.
  if (type === 'S3_ERROR' || code === 499)
    return new AppError(
      'dependency_unavailable',
      `cold storage is not available for ${action}`,
      // The log gets S3's answer without the names of objects. It contains no rows.
      { ...COLD, cause: new Error(withoutValues(error.message.replace(/, bucket .*$/s, ''))) },
    )
  if (COST_CODES.has(code)) return costly(`${action}: code ${code} ${type}`)
  if (PASSING_CODES.has(code)) return unavailable(`${action}: code ${code} ${type}`)
  const ofRows = DATA_CODES.has(code) || READING_ROWS.test(error.message)
  // ClickHouse's message quotes the rows that it can't read.
  const detail = ofRows ? '' : `: ${withoutValues(error.message)}`
  const message = `ClickHouse refused ${action}, code ${code} ${type}${detail}`
  return new StoreError(message, { code, type, isDataError: ofRows })
}

// The driver's error is not passed on as the cause, because its text can contain rows and whole responses.
const unavailable = (reason: string): AppError =>
  new AppError('dependency_unavailable', `ClickHouse is not available for ${reason}`, UNAVAILABLE)
const costly = (reason: string): AppError =>
  new CostlyError('dependency_unavailable', `ClickHouse did not finish ${reason}`, UNAVAILABLE)

const COLD = { details: { dependency: 'cold_storage' }, retryAfterS: 60 }
const UNAVAILABLE = { details: { dependency: 'clickhouse' }, retryAfterS: RETRY_AFTER_S }

function networkReason(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown fault'
  if ('code' in error && typeof error.code === 'string') return error.code
  // Status 401 comes without a code.
  if (/^authentication required$/i.test(error.message.trim()))
    return 'code 516 AUTHENTICATION_FAILED'
  return /hang up/.test(error.message) ? 'connection closed' : 'the answer cannot be read'
}

/** Removes quoted text. Names stay, because they show what is wrong with a statement. */
const withoutValues = (message: string): string =>
  message
    // A quote that is not closed reaches to the end.
    .replaceAll(/'(?:[^'\\]|\\.)*\\?(?:'|$)/gs, "'…'")
    .replaceAll(/\s+/g, ' ')
    .slice(0, DETAIL_CHARS)
