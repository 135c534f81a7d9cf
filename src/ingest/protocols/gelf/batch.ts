import { gunzipSync, inflateSync } from 'node:zlib'

import type { DecodeContext, EventSink } from '../../../model/event.js'
import { parseJson } from '../../formats/json-text.js'
import { isRecord, type JsonRecord, toWellFormed } from '../../formats/json-value.js'
import { RecordDecoder } from '../../formats/record.js'
import { readBatch } from '../../record-batch.js'
import { withSenderHost } from '../sender-host.js'

/**
 * Decodes messages of the Graylog Extended Log Format, each a record of a batch: JSON, by UDP also compressed with gzip or zlib.
 */
export function decodeGelfBatch(body: Buffer, context: DecodeContext, sink: EventSink): void {
  const batch = readBatch(body)
  const decoder = new RecordDecoder(context, withSenderHost(sink, batch.sender))
  // JSON has at most three bytes a character, and escapes of six bytes.
  const maxBytes = context.maxMessageBytes * 6
  let left = MAX_UNPACKED_BYTES
  batch.each((bytes, isCut, line) => {
    if (isCut) return decoder.put(line, TOO_LARGE, () => bytes.toString('utf8'))
    const unpacked = unpack(bytes, Math.min(maxBytes, Math.max(1, left)))
    left -= unpacked.cost
    const text = unpacked.bytes?.toString('utf8').trim() ?? null
    if (text === '') return
    const message = text === null ? undefined : parseJson(text)
    if (isRecord(message)) dropEmptyMembers(message)
    if (message === undefined) decoder.put(line, BROKEN, () => text ?? '')
    else decoder.decode(line, toWellFormed(message), () => text ?? '')
  })
}

/**
 * The most bytes that the compressed messages of a batch unpack to. A batch of 256 KiB with a ratio
 * of 30 has 8 MiB; messages with a ratio of a thousand would occupy a worker for a second.
 */
const MAX_UNPACKED_BYTES = 32 * 1024 * 1024

/**
 * Drops members without information: the version, and a `full_message` that equals `short_message`,
 * which some clients always send.
 */
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

/** @returns null for what cannot be decompressed, and the number of bytes that were */
function unpack(bytes: Buffer, maxOutputLength: number): { bytes: Buffer | null; cost: number } {
  const open = bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync : inflateSync
  if (open === inflateSync && bytes[0] !== 0x78) return { bytes, cost: 0 }
  try {
    const unpacked = open(bytes, { maxOutputLength })
    return { bytes: unpacked, cost: unpacked.length }
  } catch (error) {
    const isTooLarge = error instanceof RangeError
    return { bytes: null, cost: isTooLarge ? maxOutputLength : 0 }
  }
}
