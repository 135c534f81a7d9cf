import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { readFileSync } from 'node:fs'
import { isIPv6 } from 'node:net'

import { networkOf, plainAddress } from '../../http/address.js'
import { RecordBatch } from '../record-batch.js'
import type { Sender } from './intake.js'
import { portError } from './tcp.js'

export interface UdpOptions {
  readonly setting: string
  readonly host: string
  readonly port: number
  readonly isAllowed: (address: string) => boolean
  /** Reads a datagram and adds its records to `batch`. */
  readonly read: (datagram: Buffer, sender: RemoteInfo, batch: RecordBatch) => void
  readonly submit: (bytes: Buffer, sender: Sender) => void
}

export interface UdpListener {
  /** The number of datagrams lost for lack of memory, here or in the kernel. */
  readonly lost: () => number
  pause(isPaused: boolean): void
  close(): void
}

const TICK_MS = 10
const BATCH_BYTES = 256 * 1024
/** The most senders with records that wait for the next tick. */
const MAX_SENDERS = 1_000
/** The size of the kernel's receive buffer; the kernel may allow less (net.core.rmem_max). */
const BUFFER_BYTES = 8 * 1024 * 1024

/** Opens a UDP port. @throws Error naming the setting of a port that can't be used */
export async function openUdp(options: UdpOptions): Promise<UdpListener> {
  const socket = createSocket({
    type: isIPv6(options.host) ? 'udp6' : 'udp4',
    recvBufferSize: BUFFER_BYTES,
  })
  await bind(socket, options)
  socket.on('error', () => undefined)
  const { port } = socket.address()
  const batches = new Map<string, RecordBatch>()
  /** The addresses that have used up their share of the intake. */
  const paused = new Set<string>()
  let refused = 0
  let isPaused = false
  let isClosed = false
  const submit = (batch: RecordBatch, address: string): void =>
    options.submit(batch.take(), {
      id: `${options.setting} ${address}`,
      network: networkOf(address),
      pause: (to) => void (to ? paused.add(address) : paused.delete(address)),
    })
  const pass = (): void => {
    for (const [address, batch] of batches) if (batch.records > 0) submit(batch, address)
    batches.clear()
  }
  socket.on('message', (datagram, sender) => {
    const address = plainAddress(sender.address)
    if (!options.isAllowed(address)) return
    if (isPaused || paused.has(address)) return void (refused += 1)
    let batch = batches.get(address)
    if (batch === undefined) {
      if (batches.size >= MAX_SENDERS) pass()
      batch = new RecordBatch(address)
      batches.set(address, batch)
    }
    options.read(datagram, sender, batch)
    batch.settle()
    if (batch.size >= BATCH_BYTES) submit(batch, address)
  })
  const ticker = setInterval(pass, TICK_MS)
  return {
    lost: () => refused + kernelDrops(port),
    pause: (to) => void (isPaused = to),
    close: () => {
      if (isClosed) return
      isClosed = true
      clearInterval(ticker)
      socket.close()
      pass()
    },
  }
}

const bind = (socket: Socket, { host, port, setting }: UdpOptions): Promise<void> =>
  new Promise((resolve, reject) => {
    socket.once('error', (error: NodeJS.ErrnoException) => {
      socket.close()
      reject(portError(error, host, { port, setting }))
    })
    socket.bind({ address: host, port, exclusive: true }, () => {
      socket.removeAllListeners('error')
      resolve()
    })
  })

/** The number of datagrams that the kernel dropped at a local port, by its tables (Linux only; elsewhere 0). */
function kernelDrops(port: number): number {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  let drops = 0
  for (const table of ['udp', 'udp6']) {
    for (const line of tableOf(table).split('\n').slice(1)) {
      const columns = line.trim().split(/\s+/)
      if (columns[1]?.endsWith(local) === true) drops += Number(columns.at(-1)) || 0
    }
  }
  return drops
}

function tableOf(name: string): string {
  try {
    return readFileSync(`/proc/self/net/${name}`, 'latin1')
  } catch {
    return ''
  }
}
