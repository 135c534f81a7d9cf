import type { Config } from '../config.js'
import type { Ledger } from '../events/ledger.js'
import { ByteShares } from '../lib/byte-shares.js'
import type { BlockResult, BodyResult, EncodedBlock, MissBlock } from './block.js'
import { FairQueue, TASK_BODIES, TASK_MS } from './fair-queue.js'
import { keptOf, ordersOf, sumsOf, toBody, type Submission } from './submission.js'
import { claimRecords, idsOf, type ClaimingTask } from './record-claims.js'
import type { Once } from './once.js'
import type { Pool } from './pool.js'
import { ThreadSlots } from './thread-slots.js'
import type { Sequencer } from './sequencer.js'
import { overloaded, unavailable } from './refusals.js'
import { UnstoredTasks } from './unstored-tasks.js'
import type { Priorities } from '../priority/store.js'
import type { CollectorStats } from '../telemetry/collector-stats.js'
import type { Metrics } from '../telemetry/metrics.js'
import type { SignatureCache } from '../templates/signature-cache.js'
import type { Wal } from '../wal/wal.js'
import {
  encodeRecord,
  type LogRecord,
  type SharedCommand,
  type Command,
  type TemplateRow,
} from '../wal/record.js'
import type { TemplateRegistry } from '../templates/registry.js'
import { BlockTemplates } from './block-templates.js'
import type { Sources } from '../records/sources.js'
import { SourceAdmission } from './source-admission.js'
import type { Writer } from '../writer/writer.js'

/**
 * The most tasks on their way to disk: one being written and one to be written next. This takes 10
 * % less CPU than no limit (bench/flow/ingest.ts --small).
 */
const UNSYNCED_TASKS = 2
/** A body of this size or more starts a task without waiting for others. */
const GATHERED_BYTES = 16_384
/** The memory of a body's promise and task, which is added to its size. */
const BODY_OVERHEAD = 2048
/** The most encodings of a task, which is encoded again when a source changes meanwhile. */
const MAX_TRIES = 4

export interface PipelineDeps {
  readonly pool: Pool
  readonly sequencer: Sequencer
  readonly once: Once
  readonly wal: Wal
  readonly writer: Writer
  readonly templates: TemplateRegistry
  readonly signatures: Pick<SignatureCache, 'put'>
  readonly sources: Pick<Sources, 'admit' | 'limitOf' | 'register'>
  readonly priorities: Pick<Priorities, 'model'>
  readonly config: Pick<
    Config,
    'environment' | 'defaultTimeZone' | 'maxMessageBytes' | 'pipelineMaxBytes'
  >
  readonly metrics: Pick<Metrics, 'stored' | 'ingested'>
  readonly collectorStats: Pick<CollectorStats, 'note'>
  readonly ledger: Pick<Ledger, 'acknowledged'>
}

interface Job {
  readonly owner: string
  readonly submission: Submission
  readonly bytes: number
  estimatedMs: number
  /** The bytes of the job that count towards `maxBytes`; 0 after its reply. */
  countedBytes: number
  readonly resolve: (result: BodyResult) => void
  readonly reject: (cause: unknown) => void
}

interface Task extends ClaimingTask {
  jobs: readonly Job[]
  readonly begun: ReturnType<UnstoredTasks['begin']>
}

/**
 * The steps of a body from its arrival to the acknowledgement:
 *
 * 1. `submit` refuses a body beyond the memory limit, else puts it into the fair queue. Small bodies share a task.
 * 2. A worker decompresses and decodes the bodies, mines, hashes and folds the messages, and encodes them as one block of
 *    landing rows and one of dead letters. Bodies that it does not get to in time go back to the queue.
 * 3. New sources are registered; a source that was disabled or deleted meanwhile has the task encoded again.
 * 4. Signatures that no thread knew go to the miner's thread, which returns their templates.
 * 5. The sequencer gives the rows their event ids and priorities and finds repeats. It writes into the block's bytes.
 * 6. The block, its new templates and registrations are appended to the write-ahead log as one record, which is fsynced.
 * 7. The sender gets the counts. The writer inserts the record into ClickHouse independently.
 *
 * The last check of the sources and steps 5 and 6 run without an await between them: deleted rows do not come back, and
 * records of the log are in the order of their ids.
 */
export class Pipeline {
  readonly #deps: PipelineDeps
  readonly #templates: BlockTemplates
  readonly #queue: FairQueue<Job>
  readonly #threads: ThreadSlots
  /** The bytes of unanswered bodies, by owner. */
  readonly #bytes: ByteShares
  #isWoken = false
  /** The number of tasks that are sequenced and not on disk yet. */
  #unsynced = 0
  readonly #admission: SourceAdmission
  /** The last record of the WAL, possibly one of an earlier run. */
  #last: { readonly seq: number; readonly durable: Promise<void> }
  #seenFailures = 0
  #closed = false
  /** Work that holds template numbers. It never rejects. */
  readonly #inFlight = new Set<Promise<void>>()
  readonly #unstored = new UnstoredTasks(() => this.#deps.wal.waiting[0]?.seq ?? Infinity)
  #renumbering: Promise<void> | null = null

  constructor(deps: PipelineDeps) {
    this.#deps = deps
    this.#templates = new BlockTemplates(deps)
    this.#admission = new SourceAdmission(deps.sources)
    this.#queue = new FairQueue(deps.pool.workers)
    this.#threads = new ThreadSlots(deps.pool.workers, TASK_MS)
    this.#bytes = new ByteShares(deps.config.pipelineMaxBytes)
    this.#last = { seq: deps.wal.waiting.at(-1)?.seq ?? 0, durable: Promise.resolve() }
  }

  /** Whether the memory limit allows the owner another body of this size; called before the body is read. */
  hasRoom(bytes: number, owner: string): boolean {
    return !this.#closed && this.#bytes.hasRoom(owner, bytes) && !this.#deps.wal.isFull()
  }

  /** Bytes of the unanswered bodies. */
  get bytes(): number {
    return this.#bytes.usedBytes
  }

  /**
   * Takes one body through the pipeline.
   *
   * @returns once the accepted messages are durable; `refusal` is the reason why a body was refused as a whole
   * @throws AppError `overloaded` at the memory limit, `dependency_unavailable` when it can't be made durable
   */
  submit(submission: Submission): Promise<BodyResult> {
    const { owner } = submission
    const bytes = (submission.bytes?.byteLength ?? 0) + BODY_OVERHEAD
    if (!this.hasRoom(bytes, owner)) return Promise.reject(overloaded())
    this.#bytes.use(owner, bytes)
    return new Promise<BodyResult>((resolve, reject) => {
      this.#queue.push({
        owner,
        submission,
        bytes,
        estimatedMs: 0,
        countedBytes: bytes,
        resolve,
        reject,
      })
      this.#wake()
    })
  }

  /** The age of the oldest body of which something may not be in ClickHouse yet; 0 without one. */
  get oldestMs(): number {
    return this.#unstored.oldestMs
  }

  /** The number of messages in the WAL that ClickHouse does not have yet, without those that were there at the start. */
  get waiting(): number {
    return this.#unstored.messages
  }

  /** Requests that arrive in one iteration of the event loop share a task. */
  #wake(): void {
    if (this.#isWoken) return
    this.#isWoken = true
    setImmediate(() => {
      this.#isWoken = false
      this.#dispatch()
    })
  }

  /**
   * Appends a command to the WAL, in order with the rows.
   *
   * @returns the command's result when the writer has executed it
   */
  async execute(command: Command, rows: LandingRows | null = null): Promise<unknown> {
    const record = {
      ...EMPTY,
      landing: rows?.bytes ?? null,
      landingRows: rows?.rows ?? 0,
      command,
    }
    const { seq, durable } = this.#append(record)
    const { writer } = this.#deps
    const result = writer.resultOf(seq)
    await durable.catch((cause: unknown) => {
      writer.forget(seq)
      throw cause
    })
    await writer.flush(seq, AbortSignal.timeout(COMMAND_WAIT_MS)).catch((cause) => {
      throw unavailable('clickhouse', cause)
    })
    return await result
  }

  /** Appends a change of all instances to this instance's WAL, before the rows that are sequenced later. */
  appendCommand(command: SharedCommand): { readonly seq: number; readonly durable: Promise<void> } {
    return this.#append({ ...EMPTY, command })
  }

  /** Resolves when everything sequenced so far is in ClickHouse. @throws AppError when that takes longer than `waitMs` */
  async settle(waitMs = COMMAND_WAIT_MS): Promise<void> {
    const wait = AbortSignal.timeout(waitMs)
    const { seq, durable } = this.#last
    // A record that could not be written will never be counted.
    await durable.catch(() => undefined)
    await this.#deps.writer.flush(seq, wait).catch((cause) => {
      throw unavailable('clickhouse', cause)
    })
  }

  /** Passes templates of other instances to the miner and stores the changes. */
  async adopt(records: readonly TemplateRow[]): Promise<void> {
    while (this.#renumbering !== null) await this.#renumbering.catch(() => undefined)
    const adopted = this.#adopt(records)
    const settled = adopted.catch(() => undefined)
    this.#inFlight.add(settled)
    await settled
    this.#inFlight.delete(settled)
    await adopted
  }

  async #adopt(records: readonly TemplateRow[]): Promise<void> {
    const isNews = await this.#templates.adopt(records)
    // Changes that cannot be written are part of the next record.
    if (isNews) this.#append(EMPTY).durable.catch(() => undefined)
  }

  /**
   * Drops the forgotten templates and renumbers the others, which frees the numbers and memory of
   * the dropped ones. Bodies wait meanwhile, because template numbers are in every block and in the
   * memory that the threads share.
   */
  renumberTemplates(): Promise<void> {
    this.#renumbering ??= Promise.all(this.#inFlight)
      .then(() => this.#templates.renumber())
      .finally(() => {
        this.#renumbering = null
        this.#wake()
      })
    return this.#renumbering
  }

  /** Refuses new bodies and finishes the others. */
  async close(): Promise<void> {
    this.#closed = true
    while (this.#renumbering !== null || this.#inFlight.size > 0 || this.#queue.length > 0) {
      await this.#renumbering?.catch(() => undefined)
      this.#dispatch()
      await Promise.all(this.#inFlight)
    }
  }

  #dispatch(): void {
    // Template numbers change only after the tasks that hold some have ended.
    this.#threads.serve()
    if (this.#renumbering !== null) return
    while (this.#threads.hasFree && this.#isTaskDue()) {
      const taken = this.#queue.take(this.#threads.isShort)
      const jobs = taken.filter((job) => !this.#dropAbandoned(job))
      if (jobs.length === 0) {
        this.#queue.end(taken)
        continue
      }
      const task: Task = {
        jobs,
        bodies: jobs.map((job) => toBody(job.submission)),
        claim: null,
        begun: this.#unstored.begin(),
      }
      const end = this.#threads.begin(jobs.reduce((sum, job) => sum + job.estimatedMs, 0))
      const encoded = (): void => {
        end()
        this.#queue.end(taken)
      }
      const run: Promise<void> = this.#run(task, encoded)
        .catch(async (cause) => {
          await task.claim?.release()
          for (const job of task.jobs) {
            this.#release(job)
            job.reject(cause)
          }
        })
        .finally(() => {
          this.#inFlight.delete(run)
          this.#unstored.end(task.begun)
        })
      this.#inFlight.add(run)
    }
  }

  /** While tasks wait for the disk, small bodies are gathered in one task. */
  #isTaskDue(): boolean {
    const first = this.#queue.next(this.#threads.isShort)
    if (first === null || this.#unsynced < UNSYNCED_TASKS) return first !== null
    return first.bytes >= GATHERED_BYTES || this.#queue.length >= TASK_BODIES / 2
  }

  #dropAbandoned(job: Job): boolean {
    if (job.submission.isAbandoned?.() !== true) return false
    this.#queue.measured(job, 0)
    this.#release(job)
    job.reject(overloaded())
    return true
  }

  /** @param encoded called when no worker has the task any more */
  async #run(task: Task, encoded: () => void): Promise<void> {
    for (let attempt = 0; attempt < MAX_TRIES; attempt++) {
      const result = await this.#encode(task, attempt === 0 ? encoded : await this.#again(task))
      const isNew = await claimRecords(task, result, this.#deps.once)
      // No await from here until the record is appended to the WAL.
      if (!isNew || !this.#admission.admits(task, result)) {
        result.release()
        continue
      }
      this.#unsynced++
      await this.#sequence(task, result).finally(() => {
        this.#unsynced--
        if (this.#queue.length > 0) this.#wake()
      })
      await task.claim?.stored(new Set(idsOf(result)))
      this.#reply(task, result)
      return
    }
    throw unavailable('pipeline', null)
  }

  /**
   * Waits for a thread to encode the task once more.
   *
   * @returns called when no worker has the task any more
   */
  async #again({ jobs }: Task): Promise<() => void> {
    const turn = this.#threads.again(this.#queue.again(jobs))
    this.#wake()
    const end = await turn
    return () => {
      end()
      this.#queue.end(jobs)
    }
  }

  #reply(task: Task, { bodies, block, receivedAtMs }: BlockResult): void {
    const { metrics, collectorStats, ledger } = this.#deps
    if (block !== null) metrics.stored(block)
    for (const sum of sumsOf(task.jobs, bodies)) {
      metrics.ingested(sum.protocol, sum)
      collectorStats.note(sum)
    }
    ledger.acknowledged(receivedAtMs, keptOf(task.bodies, bodies))
    task.jobs.forEach((job, i) => {
      const body = bodies[i]
      if (body === undefined) return
      this.#release(job)
      job.resolve(body)
    })
  }

  #release(job: Job): void {
    this.#bytes.release(job.owner, job.countedBytes)
    job.countedBytes = 0
  }

  /** Encodes a task as a block and resolves the templates that no thread knew. */
  async #encode(task: Task, encoded: () => void): Promise<EncodedBlock> {
    const result = await this.#encodeOnce(task, encoded)
    await this.#admission.registerMany(task, result)
    const misses = result.block?.misses ?? null
    if (misses === null || !this.#admission.admits(task, result)) return result
    await this.#resolveMisses(result, misses)
    return result
  }

  async #encodeOnce(task: Task, encoded: () => void): Promise<EncodedBlock> {
    const { pool, priorities, config } = this.#deps
    const { environment, defaultTimeZone: timeZone, maxMessageBytes } = config
    try {
      const result = await pool.encode({
        bodies: task.bodies,
        environment,
        timeZone,
        maxMessageBytes,
        modelVersion: priorities.model.modelVersion,
      })
      this.#splitOff(task, result)
      return result
    } catch (cause) {
      throw unavailable('workers', cause)
    } finally {
      encoded()
      this.#dispatch()
    }
  }

  /** Puts back the bodies that the worker did not get to, and records the time of the others. */
  #splitOff(task: Task, { bodies }: BlockResult): void {
    bodies.forEach(({ ms }, i) => {
      const job = task.jobs[i]
      if (job !== undefined) this.#queue.measured(job, ms)
    })
    if (bodies.length === task.jobs.length) return
    this.#queue.putBack(task.jobs.slice(bodies.length))
    task.jobs = task.jobs.slice(0, bodies.length)
    task.bodies = task.bodies.slice(0, bodies.length)
  }

  async #resolveMisses({ block, release }: EncodedBlock, misses: MissBlock): Promise<void> {
    if (block === null) return
    await this.#templates.resolve(block, misses).catch((cause: unknown) => {
      release()
      throw unavailable('workers', cause)
    })
  }

  /** @returns once the block is durable */
  async #sequence(task: Task, result: EncodedBlock): Promise<void> {
    const { block, dead } = result
    if (block === null && dead === null) return
    this.#number(result)
    if (block !== null) this.#templates.use(block)
    result.retain()
    const record = {
      ...EMPTY,
      landing: block?.bytes ?? null,
      landingRows: block?.rows ?? 0,
      dead: dead?.bytes ?? null,
      ...ordersOf(task.jobs, result.bodies),
    }
    const { seq, durable } = this.#append(record, () => result.release())
    await durable
    this.#unstored.durable(task.begun, seq, keptOf(task.bodies, result.bodies))
  }

  /** @throws AppError `dependency_unavailable` when no ids are left */
  #number({ block, dead, release: free }: EncodedBlock): void {
    const { sequencer, wal } = this.#deps
    // After a failed write, later messages must not repeat events of the lost record.
    if (wal.failures !== this.#seenFailures) sequencer.forgetAll()
    this.#seenFailures = wal.failures
    try {
      if (block !== null) sequencer.sequence(block)
      if (dead !== null) sequencer.number(dead)
    } catch (cause) {
      sequencer.forgetAll()
      free()
      throw cause
    }
  }

  /** @param release called when the memory of `landing` is no longer read */
  #append(
    record: Omit<LogRecord, 'templates' | 'registrations'>,
    release: (() => void) | null = null,
  ): { seq: number; durable: Promise<void> } {
    const templates = this.#templates.takeUnsaved()
    const registrations = this.#admission.takeUnsaved()
    const payload = encodeRecord({ ...record, templates, registrations })
    const { seq, durable } = this.#deps.wal.append(payload, release, record.onceKeys !== undefined)
    const saved = durable.then(
      () => this.#deps.writer.notify(),
      (cause: unknown) => {
        this.#templates.putBack(templates)
        this.#admission.putBack(registrations)
        throw unavailable('spool', cause)
      },
    )
    this.#last = { seq, durable: saved }
    return this.#last
  }
}

/** Rows that the main thread encoded in the Native format. */
export interface LandingRows {
  readonly bytes: Uint8Array
  readonly rows: number
}

const COMMAND_WAIT_MS = 20_000
const EMPTY = { landing: null, landingRows: 0, dead: null, command: null }
