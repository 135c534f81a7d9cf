import type { Protocol } from '../protocol.js'
import { decodeSyslog } from './syslog.js'

/** Syslog, which has ports of its own. */
export const syslog: Protocol = {
  name: 'syslog',
  parsers: { 'syslog/messages': decodeSyslog },
}
