import { type ChildProcess, fork } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Store } from '../client.js'
import type { LogAt } from '../../telemetry/log.js'
import type { FromEngine, ToEngine } from './messages.js'

export interface EngineOptions {
  readonly libraryPath: string
  readonly clickhouseDir: string
  readonly configFile: string
  /** The port of the native protocol; null for none. */
  readonly tcpPort: number | null
  readonly log: LogAt<'debug' | 'info' | 'warn'>
}

/** A process of the engine. */
export interface Engine {
  readonly pid: number | null
  /** The HTTP port; null before the engine listens. */
  readonly port: number | null
  /** Resolves when the engine listens; never if it ends before. */
  readonly listening: Promise<void>
  /** The start by `performance.now`, since the clock may be set meanwhile. */
  readonly startedAtMs: number
  readonly hasExited: boolean
  /** Resolves with the reason when the process has ended; never rejects. */
  readonly exited: Promise<string>
  /**
   * Asks the process whether an established connection is one with it.
   *
   * @param localPort of the connection's own end
   * @returns false if the process has ended or listens no more; waits while it stands still. Never rejects.
   */
  confirm(localPort: number): Promise<boolean>
  /** Tells the process that a confirmed connection was closed. */
  forget(localPort: number): void
  /**
   * Asks the engine to finish, closes the store, waits a few seconds, then kills. Never rejects.
   *
   * @returns false if it had to be killed
   */
  endGently(store: Store): Promise<boolean>
  kill(): Promise<void>
}

/** After its queries the engine would read from the terminal and ends with this error, which is not the reason of the end. */
const AFTERWARDS = /cannot place history file/
const GENTLE_MS = 5_000
const TAIL_LINES = 20
const LINE_CHARS = 1_000
/** The most lines of stderr that are logged per interval; a crash prints hundreds. */
const LOG_LINES = 50
const LOG_INTERVAL_MS = 10_000
/** How often the blocking query checks whether it was cancelled; a regular end takes up to this long. */
const TICK_S = 0.5

/**
 * The embedded engine ends when this query ends. A stop finds the query in the process list by its first words, and by its
 * user, whose name is empty.
 */
const KEEP_ALIVE_SQL =
  `SELECT sleepEachRow(${TICK_S}) FROM system.numbers ` +
  // By default the engine wakes ten times a second to show progress, which nobody sees.
  'SETTINGS interactive_delay = 10000000, max_block_size = 1, function_sleep_max_microseconds_per_block = 0 FORMAT Null'
const END_SQL = `KILL QUERY WHERE user = '' AND query LIKE 'SELECT sleepEachRow%' ASYNC`

export function startEngine(options: EngineOptions): Engine {
  const listen = options.tcpPort !== null ? ['HTTP', 'TCP'] : ['HTTP']
  const sql = [...listen.map((protocol) => `SYSTEM START LISTEN ${protocol}`), KEEP_ALIVE_SQL]
  const argv = ['clickhouse-local', '--config-file', options.configFile]
  argv.push('--path', options.clickhouseDir, '--query', sql.join('; '))
  const child = fork(
    fileURLToPath(new URL('./child.js', import.meta.url)),
    [options.libraryPath, String(options.tcpPort ?? 0), ...argv],
    {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      // The engine gets neither the service's secrets nor its Node options.
      env: { TZ: 'UTC' },
      execArgv: [],
    },
  )
  return watch(child, options.log)
}

function watch(child: ChildProcess, log: LogAt<'debug' | 'info' | 'warn'>): Engine {
  const tail = readTail(child, log)
  let hasExited = false
  const exited = new Promise<string>((done) => {
    let end = 'not started'
    child.once('error', (error) => {
      end = error.message
      if (child.pid === undefined) done(end)
    })
    child.once('exit', (code, signal) => {
      hasExited = true
      end = signal === null ? `exit code ${code}` : `signal ${signal}`
    })
    // 'close' follows 'exit' when stderr has been read to its end.
    child.once('close', () => done(tail.findLast((line) => !AFTERWARDS.test(line)) ?? end))
  })
  const connections = watchConnections(child, exited)
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL')
    await exited
  }
  return {
    pid: child.pid ?? null,
    startedAtMs: performance.now(),
    get hasExited() {
      return hasExited
    },
    exited,
    get port() {
      return connections.port()
    },
    listening: connections.listening,
    confirm: connections.confirm,
    forget: connections.forget,
    kill,
    async endGently(store) {
      const late = sleep(GENTLE_MS, undefined, { ref: false })
      const asked = store.command(END_SQL).then(
        () => true,
        () => false,
      )
      const isAsked = await Promise.race([asked, late])
      // The engine waits for open connections to end, those of the service too.
      await store.close()
      if (isAsked === true) await Promise.race([exited, late])
      const hasEnded = hasExited
      await kill()
      return hasEnded
    },
  }
}

function watchConnections(child: ChildProcess, exited: Promise<string>) {
  let port: number | null = null
  const unconfirmed = new Map<number, (isConfirmed: boolean) => void>()
  const settle = (localPort: number, isConfirmed: boolean): void => {
    unconfirmed.get(localPort)?.(isConfirmed)
    unconfirmed.delete(localPort)
  }
  const listening = new Promise<void>((done) => {
    child.on('message', (message: FromEngine) => {
      if (message.kind === 'opened') return settle(message.localPort, message.isConfirmed)
      port = message.port
      done()
    })
  })
  const settleAll = (): void => {
    for (const localPort of unconfirmed.keys()) settle(localPort, false)
  }
  void exited.then(settleAll)
  const send = (message: ToEngine, onFailure: () => void = () => {}): void => {
    if (!child.connected) return onFailure()
    child.send(message, (error) => {
      if (error !== null) onFailure()
    })
  }
  return {
    port: () => port,
    listening,
    confirm: (localPort: number): Promise<boolean> =>
      new Promise((resolve) => {
        unconfirmed.set(localPort, resolve)
        send({ kind: 'opened', localPort }, () => settle(localPort, false))
      }),
    forget: (localPort: number): void => {
      settle(localPort, false)
      send({ kind: 'closed', localPort })
    },
  }
}

/** Collects the last lines of stderr, where the engine writes why it ended. */
function readTail(child: ChildProcess, log: LogAt<'debug' | 'info' | 'warn'>): readonly string[] {
  const tail: string[] = []
  if (child.stderr === null) return tail
  let [intervalStartMs, lines] = [0, 0]
  createInterface({ input: child.stderr }).on('line', (full) => {
    const line = full.slice(0, LINE_CHARS).trim()
    if (line === '') return
    tail.push(line)
    if (tail.length > TAIL_LINES) tail.shift()
    if (performance.now() - intervalStartMs > LOG_INTERVAL_MS) {
      intervalStartMs = performance.now()
      lines = 0
    }
    lines += 1
    if (lines <= LOG_LINES) log.debug({ enginePid: child.pid, line }, 'embedded ClickHouse')
  })
  return tail
}
