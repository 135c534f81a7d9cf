/**
 * The process that is the embedded ClickHouse server; started by embedded.ts with an IPC channel.
 *
 * The main thread only waits: for the engine's call to return, or for the parent to be gone. The
 * call itself blocks a worker thread for as long as the server lives.
 */
import type * as Ffi from 'ffi-rs'
import { isMainThread, Worker, workerData } from 'node:worker_threads'

const PR_SET_DUMPABLE = 4
/** O_RDWR | O_NOCTTY of Linux */
const OPEN_TERMINAL = 0o402

interface EngineStart {
  readonly libraryPath: string
  readonly argv: readonly string[]
}

if (isMainThread) superviseEngine()
else await runEngine(parseStart(workerData))

function superviseEngine(): void {
  const [libraryPath, ...argv] = process.argv.slice(2)
  if (libraryPath === undefined || process.send === undefined) {
    throw new Error('bug: the embedded engine is started by its supervisor only')
  }
  // Signals that reach the whole process group or service: the parent decides when this ends.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  process.on('disconnect', endNow)
  // gone while this was loaded: nobody says so again
  if (!process.connected) endNow()
  const start: EngineStart = { libraryPath, argv }
  const worker = new Worker(new URL(import.meta.url), { workerData: start })
  worker.on('error', (error) => process.stderr.write(`${error.message}\n`))
  worker.on('exit', endNow)
}

/**
 * Without the library's destructors, which crash when they run after the call has returned.
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
  // Loaded here only: the main thread does without native code.
  const ffi = await import('ffi-rs')
  const argv = [...start.argv]
  if (process.platform === 'linux') {
    ffi.open({ library: 'libc', path: 'libc.so.6' })
    forbidCoreDump(ffi)
    if (takeTerminal(ffi)) argv.push('--interactive')
  }
  const library = 'libchdb'
  ffi.open({ library, path: start.libraryPath })
  // Else the engine takes SIGINT and SIGTERM for itself and stops answering.
  ffi.load({
    library,
    funcName: 'chdb_set_signal_handlers_enabled',
    retType: ffi.DataType.Void,
    paramsType: [ffi.DataType.I32],
    paramsValue: [0],
  })
  ffi.load({
    library,
    funcName: 'chdb_query_cmdline',
    retType: ffi.DataType.External,
    paramsType: [ffi.DataType.I32, ffi.DataType.StringArray],
    paramsValue: [argv.length, argv],
  })
  // The thread ends here, and its end is the message. The reason, when there is one, is on stderr;
  // reading it from the result can crash.
}

/** The memory of the engine holds its password and what was logged: a crash writes none of it to a disk. */
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
 * Makes standard input a terminal that nobody writes to. Without one the engine aborts at any fault of a connection, such
 * as a request that is none: https://github.com/ClickHouse/ClickHouse/issues/115666
 *
 * @returns false where there is no terminal to be had; then it aborts and is started again
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
