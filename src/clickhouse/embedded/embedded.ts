import { randomBytes } from 'node:crypto'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { resolveLibchdb } from 'chdb/libchdb'
import { backoffMs } from '../../lib/backoff.js'
import { MINUTE_MS } from '../../model/time.js'
import type { S3 } from '../../settings/cold.js'
import { createStore, type Store, type StoreOptions } from '../client.js'
import { EngineAgent } from './agent.js'
import { repairDeduplicationLogs, syncDeduplicationLogs } from './deduplication-logs.js'
import { configXml, type EmbeddedResources, machineResources, usersXml } from './config.js'
import { endLeftover } from './leftover.js'
import { startEngine, type Engine } from './process.js'
import { isHung, PATIENCE, type WatchOptions } from './watch.js'
import type { LogAt } from '../../telemetry/log.js'
import { coldDirOf, spreadParts } from './table-directories.js'

/** Starting ─answers─▶ ready ─exits, or is hung and killed─▶ down ─backoff─▶ starting;  any ─stop─▶ stopped. */
export type EmbeddedState = 'starting' | 'ready' | 'down' | 'stopped'

export interface EmbeddedOptions {
  /** The data directory. It is created when missing, and one instance uses it at a time. */
  readonly dataDir: string
  readonly log: LogAt<'debug' | 'info' | 'warn'>
  /** The HTTP port, set when other processes connect. Absent: another free port of the loopback address at each launch. */
  readonly httpPort?: number
  /** The port of the native protocol. Absent: none. */
  readonly tcpPort?: number
  /** The password, set when other processes connect. Absent: a random one at each launch. */
  readonly password?: string
  /** The memory and threads of the engine. Absent: half of the machine's memory, and a merge thread for every core. */
  readonly resources?: EmbeddedResources
  /** A `<remote_servers>` element that makes several engines one cluster. */
  readonly remoteServers?: string
  /** The bucket of cold events and backups. Absent: none. */
  readonly s3?: S3
  /** The directory of backups. Absent: `backups` in the data directory. */
  readonly backupsDir?: string
  /** How long another engine may take to end and unlock the directory. Default: 4 s. */
  readonly lockWaitMs?: number
  /** Whether the caller has locked the directory; an engine that still runs there is then killed. */
  readonly isOurs?: boolean
  /** The time without an answer after which the engine is killed and restarted. Default half a minute. */
  readonly patience?: Pick<WatchOptions, 'everyMs' | 'answerMs' | 'misses'>
  /** Called at each change of state; must not throw. */
  readonly onState?: (state: EmbeddedState) => void
}

export interface Embedded {
  /** Connects to the engine across restarts, and never to another process that listens on its old port. */
  readonly connection: Pick<StoreOptions, 'url' | 'username' | 'password' | 'openAgent'>
  /** Address and password of the last launch. */
  readonly url: string
  readonly username: string
  readonly password: string
  readonly state: EmbeddedState
  /** The id of the engine's process; null while there is none. */
  pid(): number | null
  /** To be called after tables were created: makes their deduplication logs synchronous and spreads their parts. */
  tablesMade(): Promise<void>
  /** Lets running queries end, then ends the engine; resolves when its process is gone. */
  stop(): Promise<void>
}

/** The embedded engine cannot start; the message says what would help. */
class EmbeddedStartError extends Error {
  override readonly name = 'EmbeddedStartError'
}

const USERNAME = 'engine_client'
/** An engine whose parent was killed ends within milliseconds; its lock goes with it. */
const LOCK_WAIT_MS = 4_000
/** The error of an engine whose directory another one has locked. */
const LOCKED = 'Cannot lock file'
const UNSYNCED =
  'the file system of DATA_DIR has no attribute for synchronous files: after a power failure the batch that was ' +
  'being stored may be counted twice'
const WITHOUT_S3 =
  'holds events whose rows are on S3: set S3_URL and its keys as they were when the events were moved there'
/** Loading parts takes most of the time; a start without any takes 0.3 s. */
const START_TIMEOUT_MS = 180_000
const LATE = `no answer within ${START_TIMEOUT_MS / 1000} s`
const RESTART_BACKOFF = { baseMs: 100, maxMs: 10_000 }
/** After this time an earlier failure does not delay a restart. */
const HEALTHY_AFTER_MS = MINUTE_MS

/**
 * Starts ClickHouse in a child process and keeps it running until `stop`.
 *
 * @returns as soon as it answers, after 0.3 to 0.5 s on an empty directory
 * @throws EmbeddedStartError when the platform has no engine, another instance holds the
 *   directory, the port is taken, or the engine refuses to start
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const libraryPath = findLibrary()
  const supervisor = new Supervisor(options, libraryPath)
  await supervisor.start()
  return supervisor
}

function findLibrary(): string {
  try {
    return resolveLibchdb().path
  } catch (cause) {
    const platform = `${process.platform}-${process.arch}`
    throw new EmbeddedStartError(
      `the embedded ClickHouse is not available here (${platform}): it needs Linux with glibc or ` +
        'macOS, and the optional packages of this service installed; ' +
        'set CLICKHOUSE_URL to use a ClickHouse server instead',
      { cause },
    )
  }
}

class Supervisor implements Embedded {
  readonly username = USERNAME
  readonly connection: Embedded['connection'] = {
    // The agent supplies the port.
    url: 'http://127.0.0.1',
    username: USERNAME,
    password: () => this.password,
    openAgent: (maxSockets) => new EngineAgent(() => this.#engine, maxSockets),
  }
  readonly #options: EmbeddedOptions
  readonly #dataDir: string
  readonly #libraryPath: string
  readonly #stopping = new AbortController()
  #state: EmbeddedState = 'starting'
  #password = ''
  #port = 0
  #engine: Engine | null = null
  #failures = 0
  #stopped: Promise<void> | null = null

  constructor(options: EmbeddedOptions, libraryPath: string) {
    this.#options = options
    this.#libraryPath = libraryPath
    this.#dataDir = resolve(options.dataDir)
  }

  get password(): string {
    return this.#password
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  get state(): EmbeddedState {
    return this.#state
  }

  pid(): number | null {
    return this.#engine?.pid ?? null
  }

  async tablesMade(): Promise<void> {
    const isKept = await syncDeduplicationLogs(this.#clickhouseDir).catch(() => false)
    if (!isKept) this.#options.log.warn({}, UNSYNCED)
    await spreadParts(this.#clickhouseDir).catch(() => {})
  }

  async start(): Promise<void> {
    const { lockWaitMs = LOCK_WAIT_MS, isOurs = false, s3 } = this.#options
    if (s3 === undefined && (await this.#hasColdParts()))
      throw new EmbeddedStartError(`the data directory ${this.#dataDir} ${WITHOUT_S3}`)
    const lockedUntilMs = performance.now() + lockWaitMs
    const leftover = { clickhouseDir: this.#clickhouseDir, isOurs, waitMs: lockWaitMs }
    if (!(await endLeftover(leftover))) throw new EmbeddedStartError(this.#explain(LOCKED))
    for (;;) {
      const failure = await this.#launch()
      if (failure === null) return
      if (failure.includes(LOCKED) && performance.now() < lockedUntilMs) {
        await sleep(200)
        continue
      }
      this.#setState('stopped')
      throw new EmbeddedStartError(this.#explain(failure))
    }
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#end()
    return this.#stopped
  }

  async #end(): Promise<void> {
    this.#setState('stopped')
    this.#stopping.abort()
    const engine = this.#engine
    if (engine === null || (await engine.endGently(this.#connect()))) return
    this.#options.log.warn(
      { enginePid: engine.pid },
      'the embedded ClickHouse did not end, and was killed',
    )
  }

  /** @returns null when the engine answers; else the reason, after its process has ended */
  async #launch(): Promise<string | null> {
    const runDir = join(this.#dataDir, 'run', randomBytes(8).toString('hex'))
    try {
      this.#password = this.#options.password ?? randomBytes(24).toString('hex')
      const configFile = await this.#writeConfig(runDir)
      await this.#repair()
      if (this.#stopping.signal.aborted) return 'stopped meanwhile'
      const engine = startEngine({
        libraryPath: this.#libraryPath,
        clickhouseDir: this.#clickhouseDir,
        configFile,
        tcpPort: this.#options.tcpPort ?? null,
        log: this.#options.log,
      })
      this.#engine = engine
      const failure = await this.#waitUntilAnswers(engine)
      if (failure !== null) {
        this.#engine = null
        await engine.kill()
        return failure
      }
      void engine.exited.then((reason) => this.#onExit(engine, reason))
      void this.#watch(engine)
    } finally {
      // The engine has read its configuration, which holds the password.
      await rm(runDir, { recursive: true, force: true })
    }
    this.#setState('ready')
    return null
  }

  /** Whether parts are in cold storage. Without the disk the engine would start with their rows missing. */
  async #hasColdParts(): Promise<boolean> {
    const options = { recursive: true, withFileTypes: true } as const
    const dir = join(coldDirOf(this.#clickhouseDir), 'store')
    const found = await readdir(dir, options).catch(() => [])
    return found.some((entry) => entry.name === 'checksums.txt')
  }

  /** To be called only while no engine process runs. */
  async #repair(): Promise<void> {
    const parts = await repairDeduplicationLogs(this.#clickhouseDir)
    if (parts.length > 0)
      this.#options.log.warn(
        { parts },
        'the last insert was interrupted; its missing rows will be inserted again',
      )
  }

  get #clickhouseDir(): string {
    return join(this.#dataDir, 'clickhouse')
  }

  async #writeConfig(runDir: string): Promise<string> {
    await mkdir(this.#clickhouseDir, { recursive: true, mode: 0o700 })
    await mkdir(runDir, { recursive: true, mode: 0o700 })
    const configFile = join(runDir, 'config.xml')
    const usersFile = join(runDir, 'users.xml')
    const config = {
      clickhouseDir: this.#clickhouseDir,
      usersFile,
      backupsDir: this.#options.backupsDir ?? join(this.#dataDir, 'backups'),
      httpPort: this.#options.httpPort ?? 0,
      tcpPort: this.#options.tcpPort ?? null,
      username: this.username,
      password: this.#password,
      resources: this.#options.resources ?? machineResources(),
      remoteServers: this.#options.remoteServers ?? '',
      s3: this.#options.s3 ?? null,
    }
    await writeFile(configFile, configXml(config), { mode: 0o600 })
    await writeFile(usersFile, usersXml(config), { mode: 0o600 })
    return configFile
  }

  async #waitUntilAnswers(engine: Engine): Promise<string | null> {
    const store = this.#connect()
    try {
      const listens = engine.listening.then(() => {
        this.#port = engine.port ?? 0
        return untilAnswers(store, engine)
      })
      const late = sleep(START_TIMEOUT_MS, LATE, { ref: false })
      return await Promise.race([listens, late, engine.exited])
    } finally {
      await store.close()
    }
  }

  #connect(): Store {
    return createStore({ ...this.connection, database: 'default' })
  }

  async #watch(engine: Engine): Promise<void> {
    const agent = new EngineAgent(() => engine, 1)
    const { username, password } = this
    const { signal } = this.#stopping
    const patience = this.#options.patience ?? PATIENCE
    const hung = await isHung(engine, { agent, username, password, signal, ...patience })
    // An engine that ends waits for this connection too.
    agent.destroy()
    if (!hung) return
    if (this.#state === 'stopped') return
    this.#options.log.warn(
      { enginePid: engine.pid },
      'the embedded ClickHouse does not answer, and is killed',
    )
    await engine.kill()
  }

  #onExit(engine: Engine, reason: string): void {
    this.#engine = null
    if (this.#state === 'stopped') return
    this.#options.log.warn(
      { enginePid: engine.pid, reason },
      'the embedded ClickHouse ended unexpectedly',
    )
    if (performance.now() - engine.startedAtMs > HEALTHY_AFTER_MS) this.#failures = 0
    this.#setState('down')
    void this.#restart()
  }

  /** Tries until the engine starts or `stop` is called. */
  async #restart(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      this.#failures += 1
      const waited = await this.#pause(backoffMs(this.#failures, RESTART_BACKOFF))
      if (!waited) return
      this.#setState('starting')
      const failure = await this.#launch().catch(String)
      if (failure === null) return
      if (this.#stopping.signal.aborted) return
      this.#setState('down')
      this.#options.log.warn({ reason: failure }, 'the embedded ClickHouse did not start')
    }
  }

  /** @returns false if `stop` was called meanwhile */
  async #pause(waitMs: number): Promise<boolean> {
    try {
      await sleep(waitMs, undefined, { signal: this.#stopping.signal })
      return true
    } catch {
      return false
    }
  }

  #setState(state: EmbeddedState): void {
    if (this.#state === state || this.#state === 'stopped') return
    this.#state = state
    this.#options.onState?.(state)
  }

  #explain(failure: string): string {
    if (failure.includes(LOCKED)) {
      return (
        `the data directory ${this.#dataDir} is in use by another instance: ` +
        'stop that one, or set DATA_DIR to another directory'
      )
    }
    if (/Address already in use/.test(failure)) {
      const { httpPort = 0 } = this.#options
      return `port ${httpPort} of 127.0.0.1 is taken: the embedded ClickHouse cannot listen on it`
    }
    const { s3 } = this.#options
    if (s3 !== undefined && /S3_ERROR|for S3 disk/.test(failure)) {
      return (
        `the embedded ClickHouse can't read the events that are on S3, and does not start without them: ` +
        `check ${new URL(s3.url).host} and the settings S3_URL, S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY`
      )
    }
    return (
      `the embedded ClickHouse did not start in ${this.#dataDir}: ${failure}; ` +
      'set CLICKHOUSE_URL to use a ClickHouse server instead'
    )
  }
}

/** @returns null when the engine answers, else the reason for giving up */
async function untilAnswers(store: Store, engine: Engine): Promise<string | null> {
  while (performance.now() - engine.startedAtMs < START_TIMEOUT_MS && !engine.hasExited) {
    try {
      await store.ping()
      return null
    } catch {
      await sleep(15)
    }
  }
  return engine.hasExited ? engine.exited : LATE
}
