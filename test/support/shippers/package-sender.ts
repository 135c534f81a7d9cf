/** Reads records and sends them by a package of npm: `node package-sender.js NAME PORT`. */
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import winston from 'winston'
import { Syslog } from 'winston-syslog'
import type { SentRecord } from './records.js'

type Send = (port: number, records: readonly SentRecord[]) => Promise<void>

const SENDERS: Readonly<Record<string, Send>> = {
  'winston-syslog': async (port, records) => {
    const transport = new Syslog({
      host: '127.0.0.1',
      port,
      protocol: 'tcp4',
      type: '5424',
      localhost: 'web-1',
      app_name: 'winston-syslog',
      facility: 'local0',
      eol: '\n',
    })
    const { levels } = winston.config.syslog
    const logger = winston.createLogger({ levels, level: 'debug', transports: [transport] })
    for (const { level, message, seq } of records) logger.log({ level, message, seq })
    logger.end()
    await sleep(500)
  },
}

const [, , name = '', port] = process.argv
const send = SENDERS[name]
if (send === undefined) throw new Error(`no sender ${name}`)
await send(Number(port), JSON.parse(await text(process.stdin)) as readonly SentRecord[]) // written by packages.ts
process.exit()
