import { isRecord, type JsonRecord } from './json-value.js'

/**
 * Recognises a record of Python's Loguru (`serialize=True`): the formatted text, and beside it the
 * record that it was formatted from.
 */
export const isLoguru = ({ text, record }: JsonRecord): boolean =>
  typeof text === 'string' &&
  isRecord(record) &&
  isRecord(record['level']) &&
  isRecord(record['time'])

/** Gives the members of such a record the names that Python's own records have. Its stack trace is in the text only. */
export function expandLoguru({ text, record, ...rest }: JsonRecord): JsonRecord {
  const { level, time, extra, exception, elapsed: _, ...members } = Object(record) as JsonRecord
  return {
    ...rest,
    ...(isRecord(extra) ? extra : {}),
    ...members,
    levelname: isRecord(level) ? level['name'] : undefined,
    levelno: isRecord(level) ? level['no'] : undefined,
    timestamp: isRecord(time) ? time['timestamp'] : undefined,
    ...(exception === null || exception === undefined ? {} : { exc_text: text }),
  }
}
