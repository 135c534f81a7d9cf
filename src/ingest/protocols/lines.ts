import type { DecodeContext, EventSink } from '../../model/event.js'
import { emptyDraft, finishDraft } from '../formats/draft.js'
import { parseJson, rawText } from '../formats/json-text.js'
import { isRecord, toWellFormed } from '../formats/json-value.js'
import { decodeObjects } from '../formats/ndjson.js'
import { RecordDecoder } from '../formats/record.js'
import { readBatch } from '../record-batch.js'
import type { Protocol } from './protocol.js'
import { withSenderHost } from './sender-host.js'

/** Decodes lines, each a record of a batch: one or several JSON objects, a list of them, or plain text. */
export function decodeLines(body: Buffer, context: DecodeContext, sink: EventSink): void {
  const batch = readBatch(body)
  const withHost = withSenderHost(sink, batch.sender)
  const decoder = new RecordDecoder(context, withHost, { isTolerant: true })
  batch.each((bytes, isCut, line) => {
    const text = bytes.toString('utf8')
    if (isCut) return decoder.put(line, TOO_LARGE, () => text)
    if (text.trim() === '') return
    const value = parseJson(text)
    const records: readonly unknown[] = Array.isArray(value) ? value : [value]
    if (records.length > 0 && records.every(isRecord)) {
      for (const record of records)
        decoder.decode(line, toWellFormed(record), () => rawText(record))
      return
    }
    // Objects one after another, or a broken one.
    if (text.startsWith('{')) return decodeObjects(bytes, line, decoder)
    const draft = { ...emptyDraft(), message: text }
    return decoder.put(line, finishDraft(draft, context), () => text)
  })
}

const TOO_LARGE = {
  reason: 'message_too_large',
  message: 'the line exceeds the limit (MAX_MESSAGE_BYTES)',
  source: '',
} as const

/** JSON lines over TCP, as appenders for Logstash send them. */
export const lines: Protocol = {
  name: 'lines',
  parsers: { 'lines/batch': decodeLines },
}
