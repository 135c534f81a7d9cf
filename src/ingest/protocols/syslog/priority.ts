/** By number (RFC 5424, table 1). */
export const FACILITIES = [
  ...'kern user mail daemon auth syslog lpr news uucp cron authpriv ftp'.split(' '),
  ...'ntp audit alert clock'.split(' '),
  ...Array.from({ length: 8 }, (_, i) => `local${i}`),
]

/** The severities that five levels do not tell apart. */
export const FINE_LEVELS: Readonly<Partial<Record<number, string>>> = {
  0: 'emerg',
  1: 'alert',
  5: 'notice',
}
