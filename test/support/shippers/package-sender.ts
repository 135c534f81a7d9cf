/** Reads records and sends them by a package of npm: `node package-sender.js NAME PORT`. */
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { FluentClient } from '@fluent-org/logger'
import gelf from 'gelf-pro'
import winston from 'winston'
import { Syslog } from 'winston-syslog'
import { NUMBER_OF, type SentRecord } from './records.js'

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
  'gelf-udp': (port, records) => sendGelf(port, records, 'udp'),
  'gelf-tcp': (port, records) => sendGelf(port, records, 'tcp'),
  'fluent-org': async (port, records) => {
    const client = new FluentClient('fluent-org', {
      socket: { host: '127.0.0.1', port },
      ack: { ackTimeout: 20_000 },
      eventMode: 'Forward',
      milliseconds: true,
    })
    const sent = records.map(({ level, message, seq, atMs }) =>
      client.emit('shop', { level, message, seq, host: 'web-1' }, new Date(atMs)),
    )
    await client.flush()
    // Each is resolved by the acknowledgement of its chunk.
    await Promise.all(sent)
    await client.disconnect()
  },
}

async function sendGelf(
  port: number,
  records: readonly SentRecord[],
  kind: 'udp' | 'tcp',
): Promise<void> {
  gelf.setConfig({
    fields: { app: `gelf-${kind}` },
    adapterName: kind,
    adapterOptions: { host: '127.0.0.1', port },
  })
  for (const { level, message, seq, atMs } of records)
    await new Promise<void>((resolve, reject) => {
      const extra = { seq, host: 'web-1', timestamp: atMs / 1000 }
      const isSent = (error: unknown): void => (error ? reject(error) : resolve())
      gelf.message(message, NUMBER_OF[level], extra, isSent)
    })
}

const [, , name = '', port] = process.argv
const send = SENDERS[name]
if (send === undefined) throw new Error(`no sender ${name}`)
await send(Number(port), JSON.parse(await text(process.stdin)) as readonly SentRecord[]) // written by packages.ts
process.exit()
