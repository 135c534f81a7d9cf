import { gunzipSync, inflateSync } from 'node:zlib'

import type { DecodeContext, EventSink } from '../../../model/event.js'
import { parseJson } from '../../formats/json-text.js'
import { isRecord, type JsonRecord, toWellFormed } from '../../formats/json-value.js'
import { RecordDecoder } from '../../formats/record.js'
import { readBatch } from '../../record-batch.js'

/**
 * Decodes messages of the Graylog Extended Log Format, each a record of a batch: JSON, by UDP also compressed with gzip or zlib.
 */
export function decodeGelfBatch(body: Buffer, context: DecodeContext, sink: EventSink): void {
  const decoder = new RecordDecoder(context, sink)
  // JSON has three bytes a character at most, and escapes of six.
  const maxBytes = context.maxMessageBytes * 6
  readBatch(body).each((bytes, isCut, line) => {
    if (isCut) return decoder.put(line, TOO_LARGE, () => bytes.toString('utf8'))
    const text = unpack(bytes, maxBytes)?.toString('utf8').trim() ?? null
    if (text === '') return
    const message = text === null ? undefined : parseJson(text)
    if (isRecord(message)) dropEmptyMembers(message)
    if (message === undefined) decoder.put(line, BROKEN, () => text ?? '')
    else decoder.decode(line, toWellFormed(message), () => text ?? '')
  })
}

/** Drops the members that say nothing: the version, and a whole message that is the short one, which some clients always send. */
export function dropEmptyMembers(message: JsonRecord): void {
  delete message['version']
  if (message['full_message'] === message['short_message']) delete message['full_message']
}

const BROKEN = { reason: 'invalid_json', message: 'the message is not JSON', source: '' } as const
const TOO_LARGE = {
  reason: 'message_too_large',
  message: 'the message exceeds the limit (MAX_MESSAGE_BYTES)',
  source: '',
} as const

/** @returns null for what can't be decompressed */
function unpack(bytes: Buffer, maxOutputLength: number): Buffer | null {
  try {
    if (bytes[0] === 0x1f && bytes[1] === 0x8b) return gunzipSync(bytes, { maxOutputLength })
    if (bytes[0] === 0x78) return inflateSync(bytes, { maxOutputLength })
    return bytes
  } catch {
    return null
  }
}
