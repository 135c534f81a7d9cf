import { connect } from 'node:net'
import { createServer } from '../../src/http/server.js'
import type { HttpServer, ServerOptions } from '../../src/http/server.js'
import { loadUws } from '../../src/http/uws.js'

export const uws = loadUws(process.env)

interface LogEntry {
  readonly level: string
  readonly fields: object
  readonly message: string
}

/** A log that keeps its lines in memory. */
export function recordingLog() {
  const entries: LogEntry[] = []
  const at = (level: string) => (fields: object, message: string) => {
    entries.push({ level, fields, message })
  }
  return { entries, info: at('info'), warn: at('warn'), error: at('error') }
}

interface Running {
  readonly port: number
  readonly url: string
  readonly server: HttpServer
  readonly log: ReturnType<typeof recordingLog>
}

interface Test {
  teardown(end: () => Promise<void>): void
}

/** A server on a free port of 127.0.0.1 that ends with the test. */
export function startServer(t: Test, options: Partial<ServerOptions>): Running {
  const log = recordingLog()
  const server = createServer({
    uws,
    host: '127.0.0.1',
    port: 0,
    portSetting: 'TEST_PORT',
    routes: [],
    log,
    ...options,
  })
  const port = server.listen()
  t.teardown(() => server.close({ deadlineMs: 0 }))
  return { port, url: `http://127.0.0.1:${port}`, server, log }
}

interface RawResult {
  readonly text: string
  readonly isClosed: boolean
}

const PIECE_GAP_MS = 15

/**
 * Writes the pieces one by one on a new socket and collects the reply.
 *
 * @param from the address of the client; all of 127.0.0.0/8 are of this machine (Linux)
 * @param until ends the exchange when it is true for the reply so far; the peer's end and `waitMs` end it too
 */
export function rawExchange(
  port: number,
  pieces: readonly (string | Uint8Array)[],
  {
    until,
    waitMs = until === undefined ? 1_500 : 30_000,
    from = '127.0.0.1',
  }: { until?: (text: string) => boolean; waitMs?: number; from?: string } = {},
): Promise<RawResult> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: from })
    let text = ''
    const finish = (isClosed: boolean): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve({ text, isClosed })
    }
    const timer = setTimeout(() => finish(false), waitMs)
    socket.setNoDelay(true)
    socket.on('error', () => finish(true))
    socket.on('close', () => finish(true))
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      if (until?.(text) === true) finish(false)
    })
    const rest = [...pieces]
    const next = (): void => {
      const piece = rest.shift()
      if (piece === undefined || socket.destroyed) return
      socket.write(piece)
      setTimeout(next, PIECE_GAP_MS)
    }
    socket.on('connect', next)
  })
}

/** The status codes of all replies in a raw exchange. */
export const statuses = (text: string): number[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map((match) => Number(match[1]))
