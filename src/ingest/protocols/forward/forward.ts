import { gunzipSync } from 'node:zlib'

import { decodeZstd, loadZstd } from '../../../http/zstd.js'
import type { DecodeContext, EventSink } from '../../../model/event.js'
import { INGEST_BYTES } from '../../block.js'
import { usableSource } from '../../formats/draft.js'
import { readBatch } from '../../record-batch.js'
import { decodeMsgpack } from '../msgpack/msgpack.js'
import type { Protocol } from '../protocol.js'
import { readMessage } from './message.js'

/**
 * Decodes messages of the Forward protocol, each a record of a batch. The tag is the source of records that name none; the time of
 * an entry is that of its record, unless the record has one.
 */
function decodeForward(body: Buffer, context: DecodeContext, sink: EventSink): void {
  readBatch(body).each((bytes, _, line) => {
    const message = readMessage(bytes)
    if (message === null) return sink.reject(line, { ...UNREADABLE, raw: '' })
    const source = usableSource(message.tag)
    const entries = unpack(message.entries, message.coding)
    if (entries === null) return sink.reject(line, { ...UNREADABLE, source, raw: '' })
    const defaultSource = source === '' ? context.defaultSource : source
    return decodeEntries(entries, { ...context, defaultSource }, sink)
  })
}

const UNREADABLE = {
  reason: 'invalid_event',
  message:
    'the message has none of the forms of the Forward protocol, or is compressed otherwise than with gzip or zstd',
  source: '',
} as const

function decodeEntries(entries: Buffer, context: DecodeContext, sink: EventSink): void {
  if (entries.length === 0) return
  try {
    decodeMsgpack(entries, context, sink)
  } catch {
    sink.reject(1, { ...UNREADABLE, source: context.defaultSource, raw: '' })
  }
}

/** @returns null for entries that can't be decompressed */
function unpack(entries: Buffer, coding: string): Buffer | null {
  if (coding === '') return entries
  try {
    if (coding === 'gzip') return gunzipSync(entries, { maxOutputLength: INGEST_BYTES })
    const plain = coding === 'zstd' ? decodeZstd(entries, INGEST_BYTES) : null
    return plain === null ? null : Buffer.from(plain.buffer, plain.byteOffset, plain.byteLength)
  } catch {
    return null
  }
}

/** The Forward protocol of Fluentd, which has a port of its own. */
export const forward: Protocol = {
  name: 'forward',
  parsers: { 'forward/messages': decodeForward },
  load: loadZstd,
}
