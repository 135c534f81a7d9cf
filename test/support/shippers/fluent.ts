import type { SentRecord } from './records.js'
import { runToEnd } from './syslog.js'

const PYTHON = `
import json, sys
sys.path.append('/usr/lib/python3/dist-packages')
from fluent import sender
fluent = sender.FluentSender('python-fluent', host='127.0.0.1', port=int(sys.argv[1]), nanosecond_precision=True)
for line in sys.stdin:
    record = json.loads(line)
    body = {'message': record['message'], 'level': record['level'], 'seq': record['seq'], 'host': 'web-1'}
    if not fluent.emit_with_time('shop', record['atMs'] / 1000, body): raise fluent.last_error
fluent.close()
`

/** Sends the records by Debian's python3-fluent-logger. */
export async function sendByFluentLogger(
  port: number,
  records: readonly SentRecord[],
): Promise<void> {
  const lines = records.map((record) => `${JSON.stringify(record)}\n`).join('')
  await runToEnd('python3', ['-c', PYTHON, String(port)], lines)
}
