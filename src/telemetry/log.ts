import { pino, type Logger } from 'pino'

export type Log = Logger

/** fields that may hold a secret, wherever they stand in a log line */
const SECRET_FIELDS = [
  'password',
  'token',
  'access_token',
  'refresh_token',
  'authorization',
  'cookie',
  'secret',
  'key',
]

/** JSON lines on stderr; standard output is for what a person reads at the start. */
export const createLog = (level: string): Log =>
  pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]),
        censor: '[hidden]',
      },
    },
    pino.destination({ fd: 2, sync: true }),
  )
