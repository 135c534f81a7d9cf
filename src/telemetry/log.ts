import { type DestinationStream, destination, type Level, type Logger, pino } from 'pino'

/** Takes the fields first, then a fixed text: `log.warn({ err, batch }, 'the batch failed')`. */
export type Log = Pick<Logger, Level>

export type LogLevel = Level | 'silent'

const STDERR = 2
const HIDDEN = '[hidden]'

/** Names of fields that hold secrets; they are hidden up to two objects deep. */
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
  'dataKey',
  'smtpUrl',
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

/** The command that Redis refused, with its arguments: of AUTH they are the password. */
const REDIS_COMMAND = 'err.command'

const under = (parent: string): string[] =>
  SECRET_FIELDS.map((field) => (field.startsWith('[') ? `${parent}${field}` : `${parent}.${field}`))

/** Secrets inside longer texts, such as error messages: credentials in URLs, bearer tokens, JWTs, ingest keys. */
const SECRET_TEXT: readonly (readonly [RegExp, string])[] = [
  [/:\/\/[^\s/@"\\]{1,512}@/g, `://${HIDDEN}@`],
  [/\bBearer +[\w.~+/=-]{8,}/gi, `Bearer ${HIDDEN}`],
  [/(?<![\w-])eyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*/g, HIDDEN],
  [/\bik_[\w-]{20,}/g, HIDDEN],
]

const withoutSecrets = (line: string): string =>
  SECRET_TEXT.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), line)

/**
 * Creates a log of JSON lines whose secrets are hidden.
 *
 * @param to default: stderr, written synchronously, so that no line is lost when the process ends
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
      redact: {
        paths: [...SECRET_FIELDS, ...under('*'), ...under('*.*'), REDIS_COMMAND],
        censor: HIDDEN,
      },
      hooks: { streamWrite: withoutSecrets },
    },
    to,
  )
}
