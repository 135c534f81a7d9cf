import { setTimeout as sleep } from 'node:timers/promises'
import { Connection } from '../lib/connection.js'
import type { Service } from '../lib/service.js'

export interface Sender {
  sent: number
  stop(): Promise<void>
}

const BODY_EVENTS = 250

/** Sends events at a steady rate, 250 in each request. */
export function startSending(
  service: Service,
  rate: number,
  toLine: (i: number) => string,
): Sender {
  const connection = new Connection(service.collector)
  const state = { isOver: false }
  const startMs = performance.now()
  const sender = { sent: 0, stop: async () => undefined as void }
  const run = async (): Promise<void> => {
    while (!state.isOver) {
      const aheadMs = (sender.sent / rate) * 1000 - (performance.now() - startMs)
      if (aheadMs > 0) await sleep(aheadMs)
      const lines = Array.from({ length: BODY_EVENTS }, (_, i) => toLine(sender.sent + i))
      await send(connection, service, lines)
      sender.sent += BODY_EVENTS
    }
    connection.close()
  }
  const running = run()
  sender.stop = async () => {
    state.isOver = true
    await running
  }
  return sender
}

export async function send(
  connection: Connection,
  service: Service,
  lines: readonly string[],
): Promise<void> {
  const head = `POST /ingest HTTP/1.1\r\nAuthorization: Bearer ${service.ingestKey}\r\n`
  const { status } = await connection.request(head, Buffer.from(lines.join('\n')))
  if (status !== 202) throw new Error(`ingest answered ${status}`)
}
