import { setTimeout as sleep } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { Connection } from '../../bench/lib/connection.js'
import { seeded } from '../support/landing.js'
import { HOUR_MS } from '../../src/model/time.js'

export interface Flood {
  readonly collector: string
  readonly key: string
  readonly connections: number
  readonly seconds: number
  readonly seed: number
  /** The size of a body. */
  readonly lines: number
}

export interface Flooded {
  /** Acknowledged events. */
  readonly accepted: number
  readonly bytes: number
  /** Replies of 429. */
  readonly busy: number
  readonly withoutRetryAfter: number
  /** Other replies and broken connections, by kind. */
  readonly others: Readonly<Record<string, number>>
}

/** The senders ignore Retry-After, because the service must withstand such clients. */
const IMPATIENT_MS = 250
const DIGITS = 12
const PLACEHOLDER = '#'.repeat(DIGITS)
const SOURCES = ['shop', 'billing', 'search', 'mail']
const WORDS = 'order cart user page query token queue batch index cache lease shard'.split(' ')

async function send(flood: Flood): Promise<Flooded> {
  const total = { accepted: 0, bytes: 0, busy: 0, withoutRetryAfter: 0 }
  const others: Record<string, number> = {}
  const untilMs = performance.now() + flood.seconds * 1000
  const head = `POST /ingest HTTP/1.1\r\nAuthorization: Bearer ${flood.key}\r\nContent-Type: application/x-ndjson\r\n`
  const numbers = { next: flood.seed * 1_000_000_000 }
  const pattern = makePattern(flood)
  const one = async (): Promise<void> => {
    const connection = new Connection(flood.collector)
    const body = new Body(pattern)
    while (performance.now() < untilMs) {
      body.renumber(numbers)
      try {
        const reply = await connection.request(head, body.bytes)
        if (reply.status === 202) {
          total.accepted += flood.lines
          total.bytes += body.bytes.length
        } else if (reply.status === 429) {
          total.busy++
          if (!((reply.retryAfterS ?? 0) > 0)) total.withoutRetryAfter++
          await sleep(IMPATIENT_MS)
        } else others[reply.status] = (others[reply.status] ?? 0) + 1
      } catch (error) {
        const text = String(error)
        others[text] = (others[text] ?? 0) + 1
        await sleep(IMPATIENT_MS)
      }
    }
    connection.close()
  }
  await Promise.all(Array.from({ length: flood.connections }, one))
  return { ...total, others }
}

/** Lines of which every other one has a placeholder for a number. */
function makePattern({ lines, seed }: Flood): Buffer {
  const random = seeded(seed)
  const word = (): string => WORDS[Math.floor(random() * WORDS.length)] ?? ''
  const startMs = Date.now() - HOUR_MS
  const texts = Array.from({ length: lines }, (_, i) => {
    const source = SOURCES[Math.floor(random() * SOURCES.length)] ?? ''
    const timestamp = new Date(startMs + Math.floor(random() * HOUR_MS)).toISOString()
    const number = i % 2 === 0 ? PLACEHOLDER : 'of the pool'
    const message = `request ${number} for the ${word()} of a ${word()} was answered after ${word()}`
    return JSON.stringify({ timestamp, source, host: `node-${i % 20}`, severity: 'INFO', message })
  })
  return Buffer.from(`${texts.join('\n')}\n`)
}

/** A body whose lines with placeholders get unique numbers, so that half of its lines are new events. */
class Body {
  readonly bytes: Buffer
  readonly #places: readonly number[]

  constructor(pattern: Buffer) {
    this.bytes = Buffer.from(pattern)
    const places: number[] = []
    for (
      let at = pattern.indexOf(PLACEHOLDER);
      at >= 0;
      at = pattern.indexOf(PLACEHOLDER, at + DIGITS)
    )
      places.push(at)
    this.#places = places
  }

  renumber(numbers: { next: number }): void {
    for (const at of this.#places) {
      let n = numbers.next++
      for (let digit = DIGITS - 1; digit >= 0; digit--) {
        this.bytes[at + digit] = 48 + (n % 10)
        n = Math.floor(n / 10)
      }
    }
  }
}

if (parentPort !== null) {
  const flooded = await send(workerData as Flood) // from `overload.ts`
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
  parentPort.postMessage(flooded)
}
