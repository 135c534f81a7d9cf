import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { INGEST_KEY } from '../service.js'
import { NUMBER_OF, type SentRecord } from './records.js'
import { runToEnd } from './syslog.js'

/** Entries of a journal in its export format. A field of several lines has its length before it. */
function journalExport(source: string, records: readonly SentRecord[]): Buffer {
  const entries = records.map(({ seq, atMs, level, message }) => {
    const text = Buffer.from(message)
    const length = Buffer.alloc(8)
    length.writeBigUInt64LE(BigInt(text.length))
    const head = [
      `__CURSOR=s=${source};i=${seq.toString(16)}`,
      `__REALTIME_TIMESTAMP=${atMs}000`,
      `PRIORITY=${NUMBER_OF[level]}`,
      `SYSLOG_IDENTIFIER=${source}`,
      '_HOSTNAME=web-1',
      `SEQ=${seq}`,
      'MESSAGE',
      '',
    ].join('\n')
    return Buffer.concat([Buffer.from(head), length, text, Buffer.from('\n\n')])
  })
  return Buffer.concat(entries)
}

/** Sends the records by systemd's own program, which sends all of a journal in one request without a length. */
export async function sendByJournalUpload(
  collector: string,
  records: readonly SentRecord[],
): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'journal-'))
  const file = join(dir, 'export')
  writeFileSync(file, journalExport('journal-upload', records))
  const { host } = new URL(collector)
  try {
    await runToEnd('systemd-journal-upload', [
      `--save-state=${join(dir, 'state')}`,
      `--url=http://any:${INGEST_KEY}@${host}`,
      file,
    ])
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}
