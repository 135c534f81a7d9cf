import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { CorpusOptions } from '../data/corpus.js'
import type { Counts } from '../data/tally.js'

/** What a sender process is asked to do. */
export interface Order {
  readonly collector: string
  readonly ingestKey: string
  readonly corpus: CorpusOptions
  /** of the counts it keeps, see Tally */
  readonly stepS: number
  readonly bodyBytes: number
  readonly connections: number
  /** 0: as fast as it is acknowledged */
  readonly eventsPerS: number
  readonly gzip: boolean
}

/** What came of it. */
export interface Sent {
  /** first byte sent and last acknowledgement, by the wall clock */
  readonly startedAtMs: number
  readonly endedAtMs: number
  readonly counts: Counts
  /** of acknowledgements, see Latencies */
  readonly latencies: string
  readonly bodies: number
  /** on the wire, without headers */
  readonly bytes: number
  readonly acknowledged: number
  readonly rejected: number
  /** replies of 429 */
  readonly busy: number
  /** of sending; generating is not in it unless the events do not fit in memory */
  readonly cpuS: number
  /** the bodies that were made ahead are most of it */
  readonly peakRssBytes: number
}

export interface Sender {
  send(order: Order): Promise<Sent>
  close(): void
}

/** Starts a process that generates and sends. */
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
