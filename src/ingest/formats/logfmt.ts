import { emptyRecord, type JsonRecord } from './json-value.js'

const MAX_LINE_CHARS = 65_536
const PAIR = /([A-Za-z_@][\w.@/-]{0,127})=(?:"((?:[^"\\]|\\.)*)"|([^\s"]*))(?:\s+|$)/y

/**
 * Reads a line of `key=value` pairs (Go, Heroku). A line is logfmt only if it consists of pairs, one of which is a
 * message.
 *
 * @returns null for any other line
 */
export function readLogfmt(line: string): JsonRecord | null {
  if (line.length > MAX_LINE_CHARS || !/^[A-Za-z_@][\w.@/-]{0,127}=/.test(line)) return null
  // The `msg` of auditd is no message.
  if (!/(?:^|\s)(?:msg(?!=audit\()|message)=/.test(line)) return null
  const pair = new RegExp(PAIR)
  const record = emptyRecord()
  while (pair.lastIndex < line.length) {
    const match = pair.exec(line)
    if (match === null) return null
    const [, key = '', quoted, bare = ''] = match
    record[key] = quoted === undefined ? bare : unquote(quoted)
  }
  return record
}

const unquote = (text: string): string =>
  text.replace(/\\(.)/g, (_, char: string) => ESCAPES[char] ?? char)

const ESCAPES: Readonly<Partial<Record<string, string>>> = { n: '\n', t: '\t', r: '\r' }
