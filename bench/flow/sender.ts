/**
 * The sender process, started by sender-client.ts, so that the cost of generating and sending does not count as the
 * service's.
 */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { Corpus, type Block, type CorpusEvent } from '../data/corpus.js'
import { protocolBlock, REQUESTS } from '../data/protocol-bodies.js'
import { Tally } from '../data/tally.js'
import { Connection } from '../lib/connection.js'
import { Latencies } from '../lib/latency.js'
import type { Order, Sent } from './sender-client.js'

/** The memory for bodies generated in advance; further events are generated while sending. */
const AHEAD_BYTES = 1024 * 1024 * 1024

interface Course {
  readonly order: Order
  readonly tally: Tally
  readonly latencies: Latencies
  readonly next: () => Block | null
  /** When the next body is due (`performance.now`). */
  dueMs: number
  /** Milliseconds between two events of the whole stream; 0 for as fast as possible. */
  readonly stepMs: number
  bodies: number
  bytes: number
  acknowledged: number
  rejected: number
  busy: number
  /** The last acknowledgement. */
  ack: Ack
}

process.on('message', (order: Order) => {
  send(order).then(
    (sent) => process.send?.(sent),
    (error: unknown) => process.send?.({ failed: String(error) }),
  )
})
process.on('disconnect', () => process.exit(0))

async function send(order: Order): Promise<Sent> {
  const corpus = new Corpus(order.corpus)
  const tally = new Tally(order.stepS)
  const make = (): Block | null => {
    const see = (event: Readonly<CorpusEvent>): void => tally.add(event)
    const block = protocolBlock(corpus, order.protocol, { maxBytes: order.bodyBytes, see })
    return block === null || !order.gzip
      ? block
      : { ...block, bytes: gzipSync(block.bytes, { level: 3 }) }
  }
  const ready: Block[] = []
  for (let bytes = 0; bytes < AHEAD_BYTES;) {
    const block = make()
    if (block === null) break
    ready.push(block)
    bytes += block.bytes.length
  }
  let taken = 0
  const next = (): Block | null => ready[taken++] ?? make()
  const cpuBefore = process.cpuUsage()
  const startedAtMs = Date.now()
  const course: Course = {
    order,
    tally,
    latencies: new Latencies(),
    next,
    dueMs: performance.now(),
    stepMs: order.eventsPerS === 0 ? 0 : 1000 / order.eventsPerS,
    bodies: 0,
    bytes: 0,
    acknowledged: 0,
    rejected: 0,
    busy: 0,
    ack: { text: '', accepted: 0, rejected: 0 },
  }
  const send = REQUESTS[order.protocol] === null ? stream : lane
  await Promise.all(Array.from({ length: order.connections }, () => send(course)))
  const { user, system } = process.cpuUsage(cpuBefore)
  return {
    startedAtMs,
    endedAtMs: Date.now(),
    counts: tally.counts(),
    latencies: course.latencies.encoded(),
    bodies: course.bodies,
    bytes: course.bytes,
    acknowledged: course.acknowledged,
    rejected: course.rejected,
    busy: course.busy,
    cpuS: (user + system) / 1e6,
    peakRssBytes: process.resourceUsage().maxRSS * 1024,
  }
}

/** One connection, which sends a body after the acknowledgement of the previous one. */
async function lane(course: Course): Promise<void> {
  const { order } = course
  const connection = new Connection(order.collector)
  const coding = order.gzip ? 'Content-Encoding: gzip\r\n' : ''
  const head = `${REQUESTS[order.protocol]}Authorization: Bearer ${order.ingestKey}\r\n${coding}`
  for (let block = course.next(); block !== null; block = course.next()) {
    const dueMs = course.dueMs
    course.dueMs += block.events * course.stepMs
    const waitMs = dueMs - performance.now()
    if (course.stepMs > 0 && waitMs > 0) await sleep(waitMs)
    // At a given rate the latency of a late body counts from the time when it was due.
    const sinceMs = course.stepMs > 0 ? dueMs : performance.now()
    await deliver(course, connection, head, block)
    course.latencies.record(performance.now() - sinceMs)
    course.bodies++
    course.bytes += block.bytes.length
  }
  connection.close()
}

/** One connection of a protocol without replies: all that the kernel takes counts as acknowledged. */
async function stream(course: Course): Promise<void> {
  const { hostname, port } = new URL(course.order.collector)
  const socket = connect({ host: hostname, port: Number(port) })
  const failed = new Promise<never>((_, reject) => socket.on('error', reject))
  const written = async (): Promise<void> => {
    for (let block = course.next(); block !== null; block = course.next()) {
      const { bytes } = block
      await new Promise((resolve) => socket.write(bytes, resolve))
      course.bodies++
      course.bytes += bytes.length
      course.acknowledged += block.events
    }
    await new Promise<void>((resolve) => socket.end(resolve))
  }
  await Promise.race([written(), failed])
}

async function deliver(
  course: Course,
  connection: Connection,
  head: string,
  block: Block,
): Promise<void> {
  for (;;) {
    const reply = await connection.request(head, block.bytes)
    if (course.order.protocol !== 'ndjson' && reply.status < 300) {
      course.acknowledged += block.events
      return
    }
    if (reply.status === 202) {
      // Acknowledgements of single events are equal, so only a changed text is parsed.
      if (reply.body !== course.ack.text) course.ack = parseAck(reply.body)
      course.acknowledged += course.ack.accepted
      course.rejected += course.ack.rejected
      return
    }
    if (reply.status !== 429 && reply.status !== 503)
      throw new Error(`ingest answered ${reply.status} ${reply.body}`)
    course.busy++
    await sleep((reply.retryAfterS ?? 1) * 1000)
  }
}

interface Ack {
  readonly text: string
  readonly accepted: number
  readonly rejected: number
}

function parseAck(text: string): Ack {
  const { accepted, rejected } = Object(JSON.parse(text))
  return { text, accepted: Number(accepted), rejected: Number(rejected) }
}
