import { type DestinationStream, destination, type Level, type Logger, pino } from 'pino'

/** Takes the fields first, then a fixed text: `log.warn({ err, batch }, 'the batch failed')`. */
export type Log = Pick<Logger, Level>

/** Some levels of a log. */
export type LogAt<Levels extends Level> = Readonly<
  Record<Levels, (fields: object, text: string) => void>
>

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

/** The command that Redis refused, with its arguments, which for AUTH include the password. */
const REDIS_COMMAND = 'err.command'

const under = (parent: string): string[] =>
  SECRET_FIELDS.map((field) => (field.startsWith('[') ? `${parent}${field}` : `${parent}.${field}`))

/** Secrets inside longer texts, such as error messages: credentials in URLs, bearer tokens, JWTs, ingest keys and API tokens. */
const SECRET_TEXT: readonly (readonly [RegExp, string])[] = [
  [/:\/\/[^\s/@"\\]{1,512}@/g, `://${HIDDEN}@`],
  [/\bBearer +[\w.~+/=-]{8,}/gi, `Bearer ${HIDDEN}`],
  [/(?<![\w-])eyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*/g, HIDDEN],
  [/\b(?:ik|lat)_[\w-]{20,}/g, HIDDEN],
]

const withoutSecrets = (line: string): string =>
  SECRET_TEXT.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), line)

/**
 * Control characters that JSON does not escape, line and paragraph separators, and those that
 * change the direction of writing. A terminal would obey them, so text from outside could change
 * how other lines look.
 */
const UNSEEN = /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g

const escaped = (character: string): string =>
  String.raw`\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

const toLine = (line: string): string => withoutSecrets(line).replaceAll(UNSEEN, escaped)

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
      hooks: { streamWrite: toLine },
    },
    to,
  )
}
