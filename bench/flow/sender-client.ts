import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { CorpusOptions } from '../data/corpus.js'
import type { BenchProtocol } from '../data/protocol-bodies.js'
import type { Counts } from '../data/tally.js'

/** The orders of a sender process. */
export interface Order {
  /** Where the requests go; of a protocol without requests the address of its port. */
  readonly collector: string
  readonly ingestKey: string
  readonly protocol: BenchProtocol
  readonly corpus: CorpusOptions
  /** Seconds per step of the counts, see Tally. */
  readonly stepS: number
  readonly bodyBytes: number
  readonly connections: number
  /** In events/s; 0 for as fast as acknowledged. */
  readonly eventsPerS: number
  readonly gzip: boolean
}

/** The result of a sender process. */
export interface Sent {
  /** Times of the first sent byte and of the last acknowledgement, ms since 1970. */
  readonly startedAtMs: number
  readonly endedAtMs: number
  readonly counts: Counts
  /** The encoded latencies of acknowledgements, see Latencies. */
  readonly latencies: string
  readonly bodies: number
  /** Bytes on the wire, without headers. */
  readonly bytes: number
  readonly acknowledged: number
  readonly rejected: number
  /** Replies with status 429 or 503. */
  readonly busy: number
  /** CPU seconds of sending; generating is included only for events that do not fit in memory. */
  readonly cpuS: number
  /** Peak memory, mostly that of the bodies generated in advance. */
  readonly peakRssBytes: number
}

export interface Sender {
  send(order: Order): Promise<Sent>
  close(): void
}

/** Starts a process that generates and sends events. */
export function startSender(): Sender {
  const child = fork(fileURLToPath(new URL('./sender.js', import.meta.url)), {
    serialization: 'advanced',
    execArgv: [],
  })
  return {
    send: (order) => {
      const sent = answer(child)
      child.send(order)
      return sent
    },
    close: () => {
      if (child.connected) child.disconnect()
    },
  }
}

const answer = (child: ChildProcess): Promise<Sent> =>
  new Promise((resolve, reject) => {
    const onExit = (code: number | null): void => reject(new Error(`the sender ended (${code})`))
    child.once('exit', onExit)
    child.once('message', (message) => {
      child.off('exit', onExit)
      const said = message as Sent | { readonly failed: string } // our own sender.ts
      if ('failed' in said) reject(new Error(`the sender: ${said.failed}`))
      else resolve(said)
    })
  })
