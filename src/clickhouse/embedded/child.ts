/**
 * The process that is the embedded ClickHouse server; started by embedded.ts with an IPC channel.
 *
 * The engine's call blocks a worker thread for as long as the server lives. The main thread waits for the call to
 * return or for the parent to be gone, tells the parent where the engine listens and which connections are with it, and
 * ends the connections of others when they are too many.
 */
import type * as Ffi from 'ffi-rs'
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { beNice, ENGINE_NICE } from '../../lib/nice.js'
import { dropCodePages } from './code-pages.js'
import type { FromEngine, ToEngine } from './messages.js'
import { type Listener, openOwnSockets, type OwnSockets } from './own-sockets.js'

const PR_SET_DUMPABLE = 4
/** O_RDWR | O_NOCTTY of Linux. */
const OPEN_TERMINAL = 0o402
const LIBC = process.platform === 'darwin' ? 'libSystem.dylib' : 'libc.so.6'
/** Nobody reads the engine's terminal. Progress lines would fill its buffer within a minute, and the engine would block when it ends. */
const SILENT = ['--progress', 'off', '--progress-table', 'off']
const OOM_SCORE = '/proc/self/oom_score_adj'
/** As if it had another tenth of the memory. */
const OOM_INCREMENT = 100
const LOOK_MS = 10
const CROWD_EVERY_MS = 500
/** Most code is needed at the start only. Reading again the pages that are needed within this time costs a few milliseconds. */
const CODE_EVERY_MS = 30_000
/** An idle engine has some 80 files open. Below this number there is no need to count connections. */
const CROWD_FILES = 300
/** The most connections of other processes; the engine accepts 1024 in all. */
const MAX_STRANGERS = 200

interface EngineStart {
  readonly libraryPath: string
  readonly argv: readonly string[]
}

if (isMainThread) await superviseEngine()
else await runEngine(parseStart(workerData))

async function superviseEngine(): Promise<void> {
  const [libraryPath, tcpPort, ...argv] = process.argv.slice(2)
  if (libraryPath === undefined || process.send === undefined) {
    throw new Error('bug: the embedded engine is started by its supervisor only')
  }
  // Signals to the whole process group are ignored: the parent decides when this process ends. Without a listener
  // SIGUSR1 would open the inspector of Node.js.
  if (process.platform === 'linux') goFirst()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1'] as const)
    process.on(signal, () => {})
  process.on('disconnect', endNow)
  // If the parent ended while this was loaded, no event follows.
  if (!process.connected) endNow()
  // No module can be loaded while the engine runs.
  const ffi = await import('ffi-rs')
  ffi.open({ library: 'libc', path: LIBC })
  const start: EngineStart = { libraryPath, argv }
  const worker = new Worker(new URL(import.meta.url), { workerData: start })
  worker.on('error', (error) => process.stderr.write(`${error.message}\n`))
  worker.on('exit', endNow)
  const dropCode = (): void => dropCodePages(ffi, [libraryPath, process.execPath])
  worker.once('message', () => void watchSockets(openOwnSockets(ffi), Number(tcpPort), dropCode))
}

/**
 * Where memory runs out, the kernel ends the engine and not the service, which starts it again and takes events meanwhile.
 */
function goFirst(): void {
  try {
    const score = Number(readFileSync(OOM_SCORE, 'utf8')) + OOM_INCREMENT
    writeFileSync(OOM_SCORE, String(Math.min(score, 1000)))
  } catch {
    // A sandbox may hide the file.
  }
}

/** @param tcpPort port of the native protocol, 0 for none */
async function watchSockets(
  sockets: OwnSockets,
  tcpPort: number,
  dropCode: () => void,
): Promise<void> {
  const send = (message: FromEngine): void => void process.send?.(message)
  let listener = sockets.findListener(tcpPort)
  for (; listener === null; listener = sockets.findListener(tcpPort)) await sleep(LOOK_MS)
  const { port } = listener
  const found = listener
  const ours = new Set<number>()
  process.on('message', ({ kind, localPort }: ToEngine) => {
    if (kind === 'closed') return void ours.delete(localPort)
    const isConfirmed = sockets.isListening(found)
    if (isConfirmed) ours.add(localPort)
    send({ kind: 'opened', localPort, isConfirmed })
  })
  send({ kind: 'listening', port })
  setInterval(() => disperseCrowd(sockets, found, ours), CROWD_EVERY_MS)
  if (process.platform !== 'linux') return
  dropCode()
  setInterval(dropCode, CODE_EVERY_MS)
}

/**
 * Closes connections of other processes when there are too many. Any user of the machine can open
 * connections, and each idle one takes a thread of the engine.
 */
function disperseCrowd(sockets: OwnSockets, listener: Listener, ours: ReadonlySet<number>): void {
  if (sockets.countFiles() < CROWD_FILES) return
  const strangers = sockets.connectionsOf(listener).filter(({ peer }) => !ours.has(peer))
  if (strangers.length > MAX_STRANGERS) for (const { file } of strangers) sockets.shutDown(file)
}

/**
 * Ends the process without the library's destructors, which crash when they run after the call has returned.
 * Nothing is lost: an insert is acknowledged only when its part is written.
 */
function endNow(): void {
  process.kill(process.pid, 'SIGKILL')
}

function parseStart(value: unknown): EngineStart {
  if (typeof value !== 'object' || value === null || !('libraryPath' in value)) {
    throw new Error('bug: the engine thread has no start data')
  }
  return value as EngineStart
}

async function runEngine(start: EngineStart): Promise<void> {
  beNice(ENGINE_NICE)
  const ffi = await import('ffi-rs')
  const argv = [...start.argv]
  if (process.platform === 'linux') {
    ffi.open({ library: 'libc', path: LIBC })
    forbidCoreDump(ffi)
    if (takeTerminal(ffi)) argv.push('--interactive', ...SILENT)
  }
  const library = 'libchdb'
  ffi.open({ library, path: start.libraryPath })
  // With its own handlers the engine takes SIGINT and SIGTERM and stops answering.
  ffi.load({
    library,
    funcName: 'chdb_set_signal_handlers_enabled',
    retType: ffi.DataType.Void,
    paramsType: [ffi.DataType.I32],
    paramsValue: [0],
  })
  // oxlint-disable-next-line require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage('calling')
  ffi.load({
    library,
    funcName: 'chdb_query_cmdline',
    retType: ffi.DataType.External,
    paramsType: [ffi.DataType.I32, ffi.DataType.StringArray],
    paramsValue: [argv.length, argv],
  })
  // The end of the thread is the message. The reason is on stderr; reading it from the result can crash.
}

/** Keeps a crash from writing the engine's memory, with its password and logged messages, to a disk. */
function forbidCoreDump(ffi: typeof Ffi): void {
  const { I32, I64 } = ffi.DataType
  ffi.load({
    library: 'libc',
    funcName: 'prctl',
    retType: I32,
    paramsType: [I32, I64, I64, I64, I64],
    paramsValue: [PR_SET_DUMPABLE, 0, 0, 0, 0],
  })
}

/**
 * Makes standard input a terminal without input. Without one the engine aborts at any fault of a connection, such as
 * a malformed request: https://github.com/ClickHouse/ClickHouse/issues/115666
 *
 * @returns false if no terminal is available; then the engine aborts at such a fault and is restarted
 */
function takeTerminal(ffi: typeof Ffi): boolean {
  const { I32, String: Text } = ffi.DataType
  const call = (funcName: string, ...paramsValue: readonly (number | string)[]): number =>
    ffi.load({
      library: 'libc',
      funcName,
      retType: I32,
      paramsType: paramsValue.map((value) => (typeof value === 'number' ? I32 : Text)),
      paramsValue: [...paramsValue],
    })
  const other = call('posix_openpt', OPEN_TERMINAL)
  if (other < 0 || call('grantpt', other) !== 0 || call('unlockpt', other) !== 0) return false
  const name = ffi.load({
    library: 'libc',
    funcName: 'ptsname',
    retType: Text,
    paramsType: [I32],
    paramsValue: [other],
  })
  const terminal = call('open', name, OPEN_TERMINAL)
  return terminal >= 0 && call('dup2', terminal, 0) === 0 && call('isatty', 0) === 1
}
