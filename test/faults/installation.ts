import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createStore } from '../../src/clickhouse/client.js'
import { startEmbedded, type Embedded } from '../../src/clickhouse/embedded/embedded.js'
import { quietLog, TEST_RESOURCES } from '../support/clickhouse.js'
import {
  childOf,
  KNOWN,
  launchService,
  logIn,
  type Caller,
  type Ended,
  type Launched,
  type Service,
} from '../support/service.js'
import type { Query } from './count.js'

export type Env = Readonly<Record<string, string>>

/** Something that is ended when a fault has been tried. */
export interface Owner {
  teardown(end: () => Promise<unknown> | void): void
}

export interface InstallationOptions {
  readonly dataDir: string
  readonly env?: Env
  /** another build of the service than the one beside this file */
  readonly main?: string | undefined
}

const TRIES = 5
/** a ClickHouse that was killed is there again by then */
const LOGIN_MS = 30_000

/** A service with its data directory: killed, ended, and started again as by its supervisor. */
export class Installation {
  readonly dataDir: string
  /** settings of the next start */
  env: Env
  /** what starts in vain have said */
  readonly refusals: string[] = []
  readonly #owner: Owner
  /** the program of the next start */
  main: string | undefined
  #service: Service | null = null
  #last: Service | null = null

  constructor(owner: Owner, { dataDir, env = {}, main }: InstallationOptions) {
    this.#owner = owner
    this.dataDir = dataDir
    this.env = env
    this.main = main
  }

  get service(): Service {
    if (this.#service === null) throw new Error('bug: the service does not run')
    return this.#service
  }

  /** Where it listens, or did last: whoever sends does not know that it is gone. */
  get collector(): string {
    return this.#last?.collector ?? ''
  }

  get api(): string {
    return this.#last?.api ?? ''
  }

  launch(): Launched {
    const env = { DATA_DIR: this.dataDir, LOG_LEVEL: 'error', ...KNOWN, ...NO_ALERTS, ...this.env }
    return launchService(this.#owner, env, this.main)
  }

  /** Starts it, again and again as a supervisor does. @throws Error when it does not come up */
  async start(): Promise<void> {
    for (let tries = 1; ; tries++) {
      const launched = this.launch()
      try {
        this.#service = await launched.ready()
        this.#last = this.#service
        return
      } catch (error) {
        await launched.kill()
        const text = error instanceof Error ? error.message : String(error)
        this.refusals.push(text)
        if (tries >= TRIES) throw error
      }
      await sleep(300)
    }
  }

  /** Takes over one that was launched by hand. */
  adopt(service: Service): void {
    this.#service = service
    this.#last = service
  }

  async kill(): Promise<Ended> {
    const ended = await this.service.kill()
    this.#service = null
    return ended
  }

  async stop(): Promise<Ended> {
    const ended = await this.service.stop()
    this.#service = null
    return ended
  }

  enginePid(): number | null {
    return childOf(this.service.pid)
  }

  /** Logs in, again and again while it is told to come later. */
  async logIn(): Promise<Caller> {
    for (const until = Date.now() + LOGIN_MS; ; await sleep(300))
      try {
        return await logIn(this.service)
      } catch (error) {
        const isLater = error instanceof Error && error.message.includes('dependency_unavailable')
        if (!isLater || Date.now() > until) throw error
      }
  }

  /** Entries of the WAL that wait for ClickHouse. */
  async waiting(): Promise<number> {
    return this.metric('wal_records')
  }

  async metric(name: string): Promise<number> {
    const reply = await fetch(`${this.api}/metrics`)
    const found = new RegExp(`^log_engine_${name} (\\S+)$`, 'm').exec(await reply.text())
    if (found === null) throw new Error(`there is no metric ${name}`)
    return Number(found[1])
  }

  /** Resolves when everything acknowledged is in ClickHouse. @throws Error when that takes too long */
  async settle(limitMs = 120_000): Promise<void> {
    for (const until = Date.now() + limitMs; Date.now() < until; await sleep(50))
      if ((await this.waiting()) === 0) return
    throw new Error(`${await this.waiting()} entries still wait for ClickHouse`)
  }
}

/** what the load looks like is no test of the insights */
const NO_ALERTS: Env = { INSIGHTS_INTERVAL_SECONDS: '0' }

/** The tables of an embedded ClickHouse whose service has ended. */
export async function openTables(
  dataDir: string,
): Promise<{ readonly query: Query; readonly close: () => Promise<void> }> {
  const engine = await startEmbedded({
    dataDir: join(dataDir, 'clickhouse'),
    log: quietLog,
    resources: TEST_RESOURCES,
    lockWaitMs: 20_000,
  })
  const tables = tablesOf(engine)
  return {
    query: tables.query,
    close: async () => {
      await tables.close()
      await engine.stop()
    },
  }
}

/** The tables of a running ClickHouse. */
export function tablesOf(engine: Pick<Embedded, 'url' | 'username' | 'password'>): {
  readonly query: Query
  readonly command: (sql: string) => Promise<void>
  readonly close: () => Promise<void>
} {
  const { url, username, password } = engine
  const store = createStore({ url, username, password, database: 'logs' })
  return {
    query: (sql) => store.query({ name: 'count', sql }, {}),
    command: (sql) => store.command(sql),
    close: () => store.close(),
  }
}

/** Removes what a fault has left, mounts first. */
export function removeAll(dir: string): void {
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 })
}
