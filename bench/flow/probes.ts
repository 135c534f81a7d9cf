import { setTimeout as sleep } from 'node:timers/promises'
import type { Counts } from '../data/tally.js'
import { Tally } from '../data/tally.js'
import { type Api, listField } from '../lib/api.js'
import { Connection } from '../lib/connection.js'
import { Latencies } from '../lib/latency.js'
import type { Target } from '../lib/service.js'

const PAUSE_MS = 200
const POLL_MS = 20
const GIVE_UP_MS = 15_000
const SOURCE = 'bench-probe'
const INFO = 1

export interface Probed {
  /** Milliseconds from the acknowledgement of an event until a query returns it, polled every 20 ms. */
  readonly visible: Latencies
  readonly counts: Counts
  readonly lost: number
}

/** Sends single events, and polls for each until it is visible; ends when `stopped` returns true. */
export async function probe(target: Target, api: Api, stopped: () => boolean): Promise<Probed> {
  const connection = new Connection(target.collector)
  const asking = api.another(target)
  const tally = new Tally(1)
  const visible = new Latencies()
  let lost = 0
  for (let i = 0; !stopped(); i++) {
    const timestampMs = Date.now()
    const word = `probe${timestampMs.toString(36)}n${i}`
    const event = { timestampMs, source: SOURCE, host: 'bench', severity: INFO, message: word }
    if (!(await sendOne(connection, target, event))) continue
    tally.add(event)
    const waitedMs = await untilShown(asking, word)
    if (waitedMs === null) lost++
    else visible.record(waitedMs)
    await sleep(PAUSE_MS)
  }
  connection.close()
  asking.close()
  return { visible, counts: tally.counts(), lost }
}

async function sendOne(
  connection: Connection,
  target: Target,
  event: { readonly timestampMs: number; readonly source: string; readonly message: string },
): Promise<boolean> {
  const { timestampMs, source, message } = event
  const timestamp = new Date(timestampMs).toISOString()
  const body = JSON.stringify({ timestamp, source, host: 'bench', severity: 'INFO', message })
  const head = `POST /ingest HTTP/1.1\r\nAuthorization: Bearer ${target.ingestKey}\r\nContent-Type: application/x-ndjson\r\n`
  const reply = await connection.request(head, Buffer.from(body))
  if (reply.status === 429) await sleep((reply.retryAfterS ?? 1) * 1000)
  return reply.status === 202
}

async function untilShown(api: Api, word: string): Promise<number | null> {
  const sinceMs = performance.now()
  for (;;) {
    const page = await api.json(`/api/logs?source=${SOURCE}&limit=5`)
    const shown = listField(page, 'items').some((item) => JSON.stringify(item).includes(word))
    const waitedMs = performance.now() - sinceMs
    if (shown) return waitedMs
    if (waitedMs > GIVE_UP_MS) return null
    await sleep(POLL_MS)
  }
}
