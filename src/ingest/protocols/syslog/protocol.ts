import { RecordBatch } from '../../record-batch.js'
import type { Protocol } from '../protocol.js'
import { decodeSyslog } from './syslog.js'

/** Syslog, which has ports of its own. */
export const syslog: Protocol = {
  name: 'syslog',
  parsers: { 'syslog/messages': decodeSyslog },
  toBody: (text) => {
    const batch = new RecordBatch('')
    const bytes = Buffer.from(text)
    batch.record(bytes, 0, bytes.length, false)
    return { format: 'syslog/messages', bytes: batch.take() }
  },
}
