/**
 * One message as ranges of bytes: what a decoder leaves of a line that needed no string. The same object is
 * filled again for the next line. Words are numbers of the decoder's `Interner`; a range that is empty means
 * that the line names none.
 */
export class LineFields {
  timestampMs = 0
  source = 0
  host = 0
  environment = 0
  /** index into EVENT_TYPES */
  type = 0
  /** index into SEVERITIES, -1 = the line names no level */
  severity = -1
  /** JSON of the tags, '' = none */
  tags = ''
  /** holds the message, unescaped; valid UTF-8 */
  text: Uint8Array = EMPTY
  textStart = 0
  textEnd = 0
  isAscii = true
  /** whether any of the ranges below is not empty */
  hasTexts = false
  /** holds the fields below, all of them ASCII without escapes */
  line: Uint8Array = EMPTY
  traceStart = 0
  traceEnd = 0
  spanStart = 0
  spanEnd = 0
  summaryStart = 0
  summaryEnd = 0
  dedupStart = 0
  dedupEnd = 0
}

const EMPTY = new Uint8Array(0)
