import { fileURLToPath } from 'node:url'
import type { SentRecord } from './records.js'
import { runToEnd } from './syslog.js'

const SENDER = fileURLToPath(new URL('./package-sender.js', import.meta.url))

/** Sends the records by a package of npm, in a process of its own because some reconnect for ever. */
export const sendByPackage = (
  name: string,
  port: number,
  records: readonly SentRecord[],
): Promise<void> => runToEnd('node', [SENDER, name, String(port)], JSON.stringify(records))
