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

/** Ends its resources after the trial of a fault. */
export interface Owner {
  teardown(end: () => Promise<unknown> | void): void
}

export interface InstallationOptions {
  readonly dataDir: string
  readonly env?: Env
  /** The main file of another build. */
  readonly main?: string | undefined
}

const TRIES = 5
/** A killed ClickHouse is up again by then. */
const LOGIN_MS = 30_000

/** A service with its data directory, which is killed, stopped and restarted as by a supervisor. */
export class Installation {
  readonly dataDir: string
  /** The settings of the next start. */
  env: Env
  /** The output of failed starts. */
  readonly refusals: string[] = []
  readonly #owner: Owner
  /** The main file of the next start. */
  main: string | undefined
  #service: Service | null = null
  #last: Service | null = null
  /** How the last service ended; null while it runs. */
  #ended: Ended | null = null

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

  /** The current or the last address: senders do not know that the service is down. */
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

  /** Starts it with retries, as a supervisor does. @throws Error when all starts fail */
  async start(): Promise<void> {
    for (let tries = 1; ; tries++) {
      const launched = this.launch()
      try {
        this.adopt(await launched.ready())
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

  /** Adopts a service that was launched elsewhere. */
  adopt(service: Service): void {
    this.#service = service
    this.#last = service
    this.#ended = null
    void this.#watch(service)
  }

  async #watch(service: Service): Promise<void> {
    const ended = await service.ended
    if (this.#last === service) this.#ended = ended
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

  /** @throws Error when the service has ended by itself */
  refuseEnd(): void {
    if (this.#service === null || this.#ended === null) return
    throw new Error(`the service ended by itself, ${this.#ended.signal ?? this.#ended.code}`)
  }

  enginePid(): number | null {
    return childOf(this.service.pid)
  }

  /** Logs in, with retries after `dependency_unavailable`. */
  async logIn(): Promise<Caller> {
    for (const until = Date.now() + LOGIN_MS; ; await sleep(300))
      try {
        return await logIn(this.service)
      } catch (error) {
        const isLater = error instanceof Error && error.message.includes('dependency_unavailable')
        if (!isLater || Date.now() > until) throw error
      }
  }

  /** The number of WAL records that wait for ClickHouse. */
  async waiting(): Promise<number> {
    return this.metric('wal_records')
  }

  async metric(name: string): Promise<number> {
    const reply = await fetch(`${this.api}/metrics`)
    const found = new RegExp(`^log_engine_${name} (\\S+)$`, 'm').exec(await reply.text())
    if (found === null) throw new Error(`there is no metric ${name}`)
    return Number(found[1])
  }

  /** Resolves when everything acknowledged is in ClickHouse. @throws Error after a time limit */
  async settle(limitMs = 120_000): Promise<void> {
    for (const until = Date.now() + limitMs; Date.now() < until; await sleep(50))
      if ((await this.waiting()) === 0) return
    throw new Error(`${await this.waiting()} records still wait for ClickHouse`)
  }
}

/** The insights are not under test. */
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
  // Subqueries of a comparison read whole tables, also those of a cluster.
  const settings = { distributed_product_mode: 'global' } as const
  const store = createStore({ url, username, password, database: 'logs', settings })
  return {
    query: (sql) => store.query({ name: 'count', sql }, {}),
    command: (sql) => store.command(sql),
    close: () => store.close(),
  }
}

/** Removes the files of a trial; mounts are unmounted first. */
export function removeAll(dir: string): void {
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 })
}
