import type { DecodeContext, EventSink } from '../../../model/event.js'
import { type Draft, emptyDraft, finishDraft, usableSource } from '../../formats/draft.js'
import { RecordDecoder } from '../../formats/record.js'
import { unwrapHead } from '../../formats/text.js'
import { SYSLOG_FORMS, TEXT_FORMS } from '../../formats/text-forms.js'
import { parseTimestamp } from '../../formats/timestamp.js'
import { readHead, severityOfPri } from '../../formats/text-line.js'
import { readBatch } from '../../record-batch.js'
import type { RecordTaker } from '../../record-rows.js'
import { RecordFeed } from '../record-feed.js'
import { FACILITIES, FINE_LEVELS, PRIORITIES } from './priority.js'

/**
 * Decodes syslog messages (RFC 5424, RFC 3164 and variants), each a record of a batch. The program
 * is the source; facility, process, message id and structured data are tags. A message without a
 * host has the address of its sender. A message in JSON is decoded, with or without `@cee:` before
 * it.
 */
export function decodeSyslog(
  body: Buffer,
  context: DecodeContext,
  sink: EventSink,
  taker: RecordTaker | null = null,
): void {
  const decoder = new RecordDecoder(context, sink)
  const { sender, bytes, records, table, extent } = readBatch(body)
  const feed = new RecordFeed(bytes, context, decoder, taker)
  const readTime = (text: string) => readClockTime(text, context)
  for (let no = 0; no < records; no++) {
    no = feed.messages({ table, priorities: PRIORITIES, readTime }, no, records)
    if (no >= records) break
    const { from, to, isCut } = extent(no)
    const text = bytes.toString('utf8', from, to)
    const decoded = isCut
      ? tooLong(context)
      : finishDraft(readMessage(text, sender, context, decoder), context)
    decoder.put(no + 1, decoded, () => text)
  }
}

/** Reads `Nov 21 09:28:19`. */
const readClockTime = (text: string, context: DecodeContext): number | null =>
  /^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d$/.test(text)
    ? parseTimestamp(text.replace('  ', ' '), context)
    : null

const tooLong = ({ maxMessageBytes }: DecodeContext) =>
  ({
    reason: 'message_too_large',
    message: `message is longer than ${maxMessageBytes} bytes (MAX_MESSAGE_BYTES)`,
    source: '',
  }) as const

function readMessage(
  text: string,
  sender: string,
  context: DecodeContext,
  decoder: RecordDecoder,
): Draft {
  const pri = /^<(\d{1,3})>/.exec(text)
  const draft = pri === null ? readPlain(text, context, decoder) : null
  const read = draft ?? readSyslog(text, pri, context, decoder)
  if (read.host === '') read.host = sender
  return read
}

/** Reads a line without a priority, as `RSYSLOG_FileFormat` and pipes send it. */
function readPlain(text: string, context: DecodeContext, decoder: RecordDecoder): Draft {
  const head = readHead(text, context, TEXT_FORMS)
  if (head !== null) return withSource(unwrapHead(head, context, decoder))
  const wrapped = text.startsWith('{') ? decoder.readWrapped(text) : null
  return wrapped ?? { ...emptyDraft(), message: text }
}

function readSyslog(
  text: string,
  pri: RegExpExecArray | null,
  context: DecodeContext,
  decoder: RecordDecoder,
): Draft {
  const priority = pri?.[1] ?? '13'
  const head = readHead(text, context, SYSLOG_FORMS)
  // rsyslog forwards a message with the blank before it, so two blanks follow the head.
  if (head?.draft.message.startsWith(' ') === true) head.draft.message = head.draft.message.slice(1)
  const draft: Draft =
    head === null
      ? {
          ...emptyDraft(),
          severity: severityOfPri(priority),
          message: text.slice(pri?.[0].length ?? 0).trimStart(),
        }
      : unwrapHead(head, context, decoder)
  addPriority(draft, priority)
  return withSource(draft)
}

/** Adds the tags of a priority. The text may state another severity, which wins. */
function addPriority(draft: Draft, priority: string): void {
  const severity = severityOfPri(priority)
  if (severity === null) return
  const facility = FACILITIES[Number(priority) >> 3]
  const level = draft.severity === severity ? FINE_LEVELS[Number(priority) % 8] : undefined
  const tags = { ...draft.tags }
  if (facility !== undefined) tags['facility'] ??= facility
  if (level !== undefined) tags['severity_text'] ??= level
  draft.tags = tags
}

/** Uses the program of a head as the source. */
function withSource(draft: Draft): Draft {
  const program = draft.tags?.['program']
  if (typeof program !== 'string' || usableSource(program) === '') return draft
  const { program: _, ...tags } = draft.tags ?? {}
  draft.source = program
  draft.tags = tags
  return draft
}
