/** What a shipper sends in a test, and what must be found of it. */
export interface SentRecord {
  readonly seq: number
  readonly atMs: number
  readonly level: 'debug' | 'info' | 'warning' | 'error' | 'crit'
  readonly message: string
}

export const RECORDS = 1_000
const LEVELS = ['debug', 'info', 'warning', 'error', 'crit'] as const
/** As the service calls them. */
export const SEVERITY_OF = {
  debug: 'DEBUG',
  info: 'INFO',
  warning: 'WARNING',
  error: 'ERROR',
  crit: 'CRITICAL',
} as const
/** As syslog numbers them. */
export const NUMBER_OF = { debug: 7, info: 6, warning: 4, error: 3, crit: 2 } as const

export interface Kinds {
  /** Whether some messages have several lines. */
  readonly lines?: boolean
  /** Length of the longest messages. */
  readonly longest?: number
}

/** Records with distinct messages, of which some have several lines, characters beyond ASCII, or 4 KB. */
export function sentRecords(
  name: string,
  { lines = true, longest = 4_096 }: Kinds = {},
): readonly SentRecord[] {
  const startMs = Date.now() - 60_000
  return Array.from({ length: RECORDS }, (_, seq) => {
    const level = LEVELS[seq % LEVELS.length] ?? 'info'
    let message = `run=${name} seq=${seq} order paid by customer ${seq * 7}`
    if (lines && seq % 100 === 0) message += '\n  at pay (shop.js:12:3)\n  at main (shop.js:99:1)'
    if (seq % 100 === 1) message += ' für 12 € in 東京 😀'
    if (seq % 100 === 2) message += ` ${'x'.repeat(longest - message.length)}`
    return { seq, atMs: startMs + seq * 7, level, message }
  })
}
