import { type DestinationStream, destination, type Level, type Logger, pino } from 'pino'

/** `log.warn({ err, batch }, 'what happened')`: fields first, then a fixed text. */
export type Log = Pick<Logger, Level>

export type LogLevel = Level | 'silent'

const STDERR = 2
const HIDDEN = '[hidden]'

/** Fields that hold secrets, under any of the spellings they have here, up to two objects deep. */
const SECRET_FIELDS = [
  'password',
  'currentPassword',
  'current_password',
  'passwordHash',
  'token',
  'accessToken',
  'access_token',
  'refreshToken',
  'refresh_token',
  'secret',
  'jwtSecret',
  'webhookSecret',
  'metricsToken',
  'ingestKey',
  'apiKey',
  'authorization',
  'cookie',
  '["set-cookie"]',
  '["x-api-key"]',
  '["x-scm-token"]',
]

const under = (parent: string): string[] =>
  SECRET_FIELDS.map((field) => (field.startsWith('[') ? `${parent}${field}` : `${parent}.${field}`))

/**
 * Secrets inside longer text, such as the message of an error: credentials of a URL, bearer tokens,
 * JWTs, ingest keys.
 */
const SECRET_TEXT: readonly (readonly [RegExp, string])[] = [
  [/:\/\/[^\s/@"\\]{1,512}@/g, `://${HIDDEN}@`],
  [/\bBearer +[\w.~+/=-]{8,}/gi, `Bearer ${HIDDEN}`],
  [/(?<![\w-])eyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*/g, HIDDEN],
  [/\bik_[\w-]{20,}/g, HIDDEN],
]

const withoutSecrets = (line: string): string =>
  SECRET_TEXT.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), line)

/**
 * A log of JSON lines with ISO times and the level by name; secrets are hidden.
 *
 * @param to stderr when absent, written at once: nothing is lost when the process ends
 */
export function createLog(
  level: LogLevel,
  to: DestinationStream = destination({ dest: STDERR, sync: true }),
): Log {
  return pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: [...SECRET_FIELDS, ...under('*'), ...under('*.*')], censor: HIDDEN },
      hooks: { streamWrite: withoutSecrets },
    },
    to,
  )
}
