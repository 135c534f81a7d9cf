import { createServer as createPlainServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'

import { networkOf, plainAddress } from '../../http/address.js'
import { countConnections, type ConnectionPool } from '../../http/connection-limits.js'
import type { Log } from '../../telemetry/log.js'
import type { Certificate } from './certificate.js'
import type { Peer, Session } from './session.js'

/** The parts that all listeners share. */
export interface ListenerHost {
  readonly host: string
  readonly log: Log
  /** Whether an address may connect. */
  readonly isAllowed: (address: string) => boolean
  /** The pools that count open connections: one for all ports of the process, and one for the listeners. */
  readonly pools: readonly ConnectionPool[]
  readonly held: HeldBytes
}

export interface TcpOptions {
  readonly setting: string
  readonly port: number
  /** Present for TLS. */
  readonly certificate?: Certificate
  readonly openSession: (peer: Peer) => Session
}

export interface TcpListener {
  readonly port: number
  readonly connections: number
  /** Pauses or resumes reading. */
  pause(isPaused: boolean): void
  /** Stops accepting and reading; what was read is passed on. */
  stop(): Promise<void>
  /** Ends all connections. */
  close(): Promise<void>
}

/** How often the gathered records are passed on. */
const TICK_MS = 10
const SWEEP_MS = 1_000
/** A connection that stays in the middle of a record for this long is closed. */
const STUCK_MS = 60_000
/** A connection that was idle for this long may be closed to make room for another. */
const SPARE_MS = 30_000
const WARN_MS = 60_000
const KEEP_ALIVE_MS = 60_000
const HANDSHAKE_MS = 10_000
/** Time for the bytes that the kernel has already received. */
const LINGER_MS = 100
/** The most bytes of replies that a client has not read. Each reply has about 300 bytes at most. */
const MAX_UNREAD_BYTES = 1024 * 1024

interface Connection {
  readonly socket: Socket
  readonly session: Session
  /** Ends the count of this connection towards the limits. */
  readonly leave: () => void
  lastMs: number
  heldBytes: number
  /** Whether the sender has used up its share of the intake. */
  isPaused: boolean
}

/**
 * The bytes that connections hold while they wait for the rest of a record. Above the limit the connection that holds the most is
 * closed, so that many half records cannot fill the memory.
 */
export class HeldBytes {
  readonly #maxBytes: number
  readonly #owners = new Set<() => { readonly bytes: number; readonly drop: () => void } | null>()
  bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** @param largest finds the connection of a listener that holds the most bytes */
  watch(largest: () => { readonly bytes: number; readonly drop: () => void } | null): () => void {
    this.#owners.add(largest)
    return () => void this.#owners.delete(largest)
  }

  change(bytes: number): void {
    this.bytes += bytes
    if (bytes <= 0) return
    while (this.bytes > this.#maxBytes) {
      const found = [...this.#owners].map((largest) => largest()).filter((one) => one !== null)
      const worst = found.toSorted((a, b) => b.bytes - a.bytes)[0]
      if (worst === undefined || worst.bytes === 0) return
      worst.drop()
    }
  }
}

/** Opens a TCP port. @throws Error naming the setting of a port that can't be used */
export async function openTcp(host: ListenerHost, options: TcpOptions): Promise<TcpListener> {
  const listener = new Connections(host, options)
  const accept = (socket: Socket): void => listener.accept(socket)
  const { certificate } = options
  const server: Server =
    certificate === undefined
      ? createPlainServer({ noDelay: true }, accept)
      : openTls(certificate, listener, accept)
  await listen(server, host.host, options)
  server.on('error', (error) => host.log.warn({ err: error }, `${options.setting} can't accept`))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : options.port
  let closed: Promise<void> | null = null
  return {
    port,
    get connections() {
      return listener.size
    },
    pause: (isPaused) => listener.pause(isPaused),
    stop: () => {
      closed ??= new Promise((resolve) => server.close(() => resolve()))
      return listener.stop()
    },
    close: async () => {
      listener.close()
      await closed
    },
  }
}

function openTls(
  certificate: Certificate,
  listener: Connections,
  accept: (socket: Socket) => void,
): Server {
  const options = { ...certificate.current(), handshakeTimeout: HANDSHAKE_MS }
  const server = createTlsServer(options)
  certificate.onRenewed((files) => server.setSecureContext(files))
  listener.guardHandshakes(server)
  server.on('secureConnection', accept)
  return server
}

const listen = (server: Server, host: string, { port, setting }: TcpOptions): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(portError(error, host, { port, setting })),
    )
    server.listen({ host, port, backlog: 1024 }, () => {
      server.removeAllListeners('error')
      resolve()
    })
  })

export function portError(
  { code = '' }: NodeJS.ErrnoException,
  host: string,
  { port, setting }: Pick<TcpOptions, 'port' | 'setting'>,
): Error {
  const reason =
    code === 'EADDRINUSE'
      ? 'is in use'
      : code === 'EACCES'
        ? 'needs a privilege (CAP_NET_BIND_SERVICE)'
        : `can't be used (${code})`
  return new Error(`port ${port} on ${host} ${reason}; choose another with ${setting}`)
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`

/** The connections of one port. */
class Connections {
  readonly #host: ListenerHost
  readonly #options: TcpOptions
  readonly #count: (change: number) => boolean
  readonly #all = new Set<Connection>()
  /** Connections with gathered records, or with a last record that may be complete. */
  readonly #busy = new Set<Connection>()
  readonly #networks = new Map<string, number>()
  /** The connections without a session yet, by the address and port of their clients. */
  readonly #handshakes = new Map<string, Pick<Connection, 'socket' | 'leave'>>()
  readonly #unwatch: () => void
  readonly #sweeper: NodeJS.Timeout
  #ticker: NodeJS.Timeout | null = null
  #isPaused = false
  #isClosing = false
  #isStopped = false
  #warnedAtMs = -Infinity

  constructor(host: ListenerHost, options: TcpOptions) {
    this.#host = host
    this.#options = options
    this.#count = countConnections(host.pools)
    this.#unwatch = host.held.watch(() => this.#largest())
    this.#sweeper = setInterval(() => this.#sweep(), SWEEP_MS).unref()
  }

  get size(): number {
    return this.#all.size
  }

  /** Counts handshakes as connections. A failed one is not logged as a warning. */
  guardHandshakes(server: Server): void {
    server.on('connection', (socket: Socket) => {
      // A connection that was reset has no address any more.
      if (socket.remoteAddress === undefined) return void socket.destroy()
      const leave = this.#enter(socket)
      if (leave === null) return
      const key = peerOf(socket)
      this.#handshakes.set(key, { socket, leave })
      socket.once('close', () => {
        if (this.#handshakes.get(key)?.socket === socket) this.#endHandshake(key)
      })
    })
    server.on('secureConnection', (socket: Socket) => this.#endHandshake(peerOf(socket)))
    server.on('tlsClientError', (error: Error) =>
      this.#host.log.debug({ err: error }, 'a TLS handshake failed'),
    )
  }

  accept(socket: Socket): void {
    socket.on('error', () => socket.destroy())
    const leave = this.#enter(socket)
    if (leave === null) return
    const address = plainAddress(socket.remoteAddress ?? '')
    const network = networkOf(address)
    socket.setKeepAlive(true, KEEP_ALIVE_MS)
    const session = this.#options.openSession({
      id: `${this.#options.setting} ${address} ${socket.remotePort}`,
      address,
      network,
      pause: (isPaused) => {
        connection.isPaused = isPaused
        this.#flow(connection)
      },
      write: (bytes, done) => {
        // A client that does not read its replies is disconnected.
        if (socket.writableLength > MAX_UNREAD_BYTES) socket.destroy()
        if (socket.writable) socket.write(bytes, done)
        else done?.(new Error('the connection is closed'))
      },
      close: (reason) => {
        this.#host.log.debug(
          { address, reason },
          `a connection to ${this.#options.setting} is closed`,
        )
        socket.destroySoon()
      },
      refuse: (reason) => {
        const text = `a connection to ${this.#options.setting} is refused: ${reason}`
        this.#warn({ address }, text)
        socket.destroySoon()
      },
    })
    const lastMs = Date.now()
    const connection: Connection = {
      socket,
      session,
      leave,
      lastMs,
      heldBytes: 0,
      isPaused: false,
    }
    this.#all.add(connection)
    socket.on('data', (chunk: Buffer) => this.#read(connection, chunk))
    socket.once('close', () => this.#remove(connection))
    this.#flow(connection)
  }

  pause(isPaused: boolean): void {
    this.#isPaused = isPaused
    for (const connection of this.#all) this.#flow(connection)
  }

  #flow({ socket, isPaused }: Connection): void {
    if (isPaused || this.#isPaused || this.#isStopped) socket.pause()
    else socket.resume()
  }

  async stop(): Promise<void> {
    if (this.#isClosing) return
    this.#isClosing = true
    clearInterval(this.#sweeper)
    if (this.#all.size > 0) await new Promise((resolve) => setTimeout(resolve, LINGER_MS))
    this.#isStopped = true
    for (const connection of this.#all) {
      this.#flow(connection)
      connection.session.end()
    }
    if (this.#ticker !== null) clearInterval(this.#ticker)
  }

  close(): void {
    for (const { socket } of this.#handshakes.values()) socket.destroy()
    for (const connection of this.#all) {
      this.#remove(connection)
      connection.socket.destroySoon()
    }
    this.#unwatch()
  }

  #read(connection: Connection, chunk: Buffer): void {
    connection.lastMs = Date.now()
    connection.session.push(chunk)
    this.#note(connection)
    this.#busy.add(connection)
    this.#ticker ??= setInterval(() => this.#tick(), TICK_MS)
  }

  #note(connection: Connection): void {
    const { heldBytes } = connection.session
    const change = heldBytes - connection.heldBytes
    connection.heldBytes = heldBytes
    this.#host.held.change(change)
  }

  #tick(): void {
    const nowMs = Date.now()
    for (const connection of this.#busy) {
      const isBusy = connection.session.tick(nowMs - connection.lastMs)
      this.#note(connection)
      if (!isBusy) this.#busy.delete(connection)
    }
    if (this.#busy.size > 0 || this.#ticker === null) return
    clearInterval(this.#ticker)
    this.#ticker = null
  }

  /** Closes the connections that stay in the middle of a record. */
  #sweep(): void {
    if (this.#isPaused) return
    const beforeMs = Date.now() - STUCK_MS
    for (const { socket, session, lastMs, isPaused } of this.#all)
      if (lastMs < beforeMs && session.isWithin && !isPaused) socket.destroy()
  }

  #remove(connection: Connection): void {
    if (!this.#all.delete(connection)) return
    this.#busy.delete(connection)
    connection.session.end()
    this.#host.held.change(-connection.heldBytes)
    connection.heldBytes = 0
    connection.leave()
  }

  #endHandshake(key: string): void {
    this.#handshakes.get(key)?.leave()
    this.#handshakes.delete(key)
  }

  /** Counts a connection. @returns a function to call once at its end; null for one that was refused and closed */
  #enter(socket: Socket): (() => void) | null {
    const address = plainAddress(socket.remoteAddress ?? '')
    const network = networkOf(address)
    const isWelcome = !this.#isClosing && this.#host.isAllowed(address)
    if (!isWelcome || !this.#admit(network)) {
      socket.destroy()
      if (isWelcome) this.#warnOfLimit()
      return null
    }
    this.#networks.set(network, (this.#networks.get(network) ?? 0) + 1)
    return () => {
      this.#count(-1)
      const left = (this.#networks.get(network) ?? 1) - 1
      if (left === 0) this.#networks.delete(network)
      else this.#networks.set(network, left)
    }
  }

  /** Counts a connection. When half of the places are taken, one network may have as many as are free. */
  #admit(network: string): boolean {
    const isOpen = this.#count(1) || this.#makeRoom()
    const { pools } = this.#host
    const isCrowded = pools.some(({ open, limit }) => open > limit / 2)
    const free = Math.min(...pools.map(({ open, limit }) => limit - open))
    if (isOpen && (!isCrowded || (this.#networks.get(network) ?? 0) <= free)) return true
    this.#count(-1)
    return false
  }

  /** Closes the connection that has been idle the longest. */
  #makeRoom(): boolean {
    let idlest: Connection | null = null
    for (const connection of this.#all)
      if (idlest === null || connection.lastMs < idlest.lastMs) idlest = connection
    if (idlest === null || Date.now() - idlest.lastMs < SPARE_MS) return false
    idlest.socket.destroy()
    this.#remove(idlest)
    return this.#host.pools.every(({ open, limit }) => open <= limit)
  }

  #warnOfLimit(): void {
    this.#warn({}, `${this.#options.setting} has no room for further connections (MAX_CONNECTIONS)`)
  }

  /** Warns at most once a minute, so that clients that reconnect again and again do not fill the log. */
  #warn(details: object, message: string): void {
    if (Date.now() - this.#warnedAtMs < WARN_MS) return
    this.#warnedAtMs = Date.now()
    this.#host.log.warn(details, message)
  }

  #largest(): { readonly bytes: number; readonly drop: () => void } | null {
    let largest: Connection | null = null
    for (const connection of this.#all)
      if (largest === null || connection.heldBytes > largest.heldBytes) largest = connection
    if (largest === null) return null
    const found = largest
    return {
      bytes: found.heldBytes,
      drop: () => {
        found.socket.destroy()
        this.#remove(found)
      },
    }
  }
}
