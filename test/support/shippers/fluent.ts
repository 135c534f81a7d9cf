import { INGEST_KEY } from '../service.js'
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

const GRAYPY = `
import json, logging, sys
sys.path.append('/usr/lib/python3/dist-packages')
import graypy
host, port, path = sys.argv[1:]
logger = logging.getLogger('shop.cart')
logger.setLevel(1)
logger.addHandler(graypy.GELFHTTPHandler(host, int(port), path=path, localname='web-1'))
levels = {'debug': 10, 'info': 20, 'warning': 30, 'error': 40, 'crit': 50}
for line in sys.stdin:
    record = json.loads(line)
    logger.log(levels[record['level']], record['message'], extra={'seq': record['seq'], 'app': 'graypy'})
`

/** Sends the records by Debian's python3-graypy over HTTP, which hangs up without reading the replies. */
export async function sendByGraypy(
  collector: string,
  records: readonly SentRecord[],
): Promise<void> {
  const { hostname, port } = new URL(collector)
  const lines = records.map((record) => `${JSON.stringify(record)}\n`).join('')
  await runToEnd('python3', ['-c', GRAYPY, hostname, port, `/gelf?token=${INGEST_KEY}`], lines)
}

/** Sends the records by Debian's python3-fluent-logger. */
export async function sendByFluentLogger(
  port: number,
  records: readonly SentRecord[],
): Promise<void> {
  const lines = records.map((record) => `${JSON.stringify(record)}\n`).join('')
  await runToEnd('python3', ['-c', PYTHON, String(port)], lines)
}
