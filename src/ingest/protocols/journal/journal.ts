import { AppError } from '../../../model/errors.js'
import type { DecodeContext, EventSink } from '../../../model/event.js'
import type { Reply } from '../../../http/reply.js'
import { decodeJournalExport } from '../../formats/journal-export.js'
import type { JsonRecord } from '../../formats/json-value.js'
import { RecordDecoder } from '../../formats/record.js'
import { ingestRoute, laterReply } from '../ingest-route.js'
import type { Protocol } from '../protocol.js'
import { JournalEntries } from './entries.js'

/** Whether a field is the address of an entry in its journal. `__REALTIME_TIMESTAMP` is its time, and is kept. */
const isAddress = (name: string): boolean =>
  name.startsWith('__') && name !== '__REALTIME_TIMESTAMP'

/**
 * Decodes entries in the journal's export format. An entry is stored once, identified by its
 * cursor, because the sender repeats whole requests after an error.
 *
 * @throws AppError `bad_request` when nothing in the body has this format
 */
function decodeJournal(bytes: Buffer, context: DecodeContext, sink: EventSink): void {
  const decoder = new RecordDecoder(context, sink)
  const isEntry = /^\s*[A-Z_][A-Z0-9_]*[=\n]/.test(bytes.toString('latin1', 0, 256))
  if (bytes.length > 0 && !isEntry)
    throw new AppError('bad_request', "the body does not have the journal's export format")
  decodeJournalExport(bytes, {
    decode: (line, entry, rawOf) => {
      const cursor = entry['__CURSOR']
      if (typeof cursor === 'string' && sink.identify?.(cursor) === false) decoder.count(1)
      else decoder.decode(line, withoutAddress(entry, context), rawOf)
    },
  })
}

function withoutAddress(entry: JsonRecord, { requestSource }: DecodeContext): JsonRecord {
  const record: JsonRecord = requestSource === '' ? {} : { source: requestSource }
  for (const [name, value] of Object.entries(entry)) if (!isAddress(name)) record[name] = value
  return record
}

const STORED: Reply = { status: 202, headers: { 'Content-Type': 'text/plain' }, body: 'OK.\n' }

/** The protocol of `systemd-journal-upload`. */
export const journal: Protocol = {
  name: 'journal',
  parsers: { 'journal/export': decodeJournal },
  routes: (services) => [
    ingestRoute(
      {
        id: 'journal_upload',
        path: '/upload',
        protocol: 'journal',
        format: 'journal/export',
        parts: { split: () => new JournalEntries(), reply: STORED },
        toReply: () => STORED,
        toErrorReply: laterReply,
      },
      services,
    ),
  ],
}
