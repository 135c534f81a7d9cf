import { AppError } from '../model/errors.js'
import type { CanonicalEvent } from '../model/event.js'
import type {
  BlockResult,
  BodyFormat,
  BodyResult,
  BodyTask,
  EncodedBlock,
  MissBlock,
  RowBlock,
  SourceVerdict,
} from './block.js'
import { deletionOf, sumsOf, type AcceptedBodies } from './submission.js'
import type { Pool } from './pool.js'
import type { Sequencer } from './sequencer.js'
import type { Wal } from '../wal/wal.js'
import {
  encodeRecord,
  type LogRecord,
  type Registration,
  type SharedCommand,
  type Command,
  type TemplateRow,
} from '../wal/record.js'
import { toTemplateRow, type MinedTemplate, type TemplateRegistry } from '../templates/registry.js'
import type { Sources } from '../records/sources.js'
import type { Writer } from '../writer/writer.js'

/** bench/flow/ingest.ts: smaller tasks keep the threads even, larger ones save hand-overs */
const TASK_BYTES = 2 * 1024 * 1024
const TASK_BODIES = 512
/** one being written and one to be written next; bench/flow/ingest.ts --small: the service takes 0.9 of its CPU */
const UNSYNCED_TASKS = 2
/** of a body that a task is worth while for alone */
const GATHERED_BYTES = 16_384
/** a body counts at least this much towards the bound: its promise and task cost memory too */
const BODY_OVERHEAD = 2048
/** a source that changes on every try is not waited for */
const MAX_TRIES = 4

/** One request's messages, with what its sender may do. */
export interface Submission {
  readonly format: BodyFormat
  readonly bytes: Uint8Array | null
  readonly events: readonly CanonicalEvent[] | null
  readonly protocol: string
  readonly source: string | null
  readonly allowedSources: readonly string[] | null
  readonly keepRaw: boolean
  readonly maxRows: number
  /** id of the dead letter this is; in the same durable step it goes, unless the message is dropped */
  readonly replays: number | null
  /** null = an unregistered source's messages are dead-lettered */
  readonly register: Omit<Registration, 'name'> | null
}

export interface PipelineParts {
  readonly pool: Pool
  readonly sequencer: Sequencer
  readonly wal: Wal
  readonly writer: Writer
  readonly templates: TemplateRegistry
  readonly sources: Pick<Sources, 'admit' | 'register'>
  readonly environment: string
  readonly maxMessageBytes: number
  /** bodies in work at once, in bytes */
  readonly maxBytes: number
  readonly modelVersion: () => string
  /** Makes the template of a signature known to every thread. */
  readonly learnSignature: (lo: number, hi: number, templateNo: number) => void
  readonly onAccepted: (bodies: AcceptedBodies) => void
}

interface Job {
  readonly submission: Submission
  /** what it counts towards the bound */
  readonly bytes: number
  /** that, until it is answered */
  held: number
  readonly resolve: (result: BodyResult) => void
  readonly reject: (cause: unknown) => void
}

interface Task {
  readonly jobs: readonly Job[]
  bodies: readonly BodyTask[]
}

/**
 * The way of a message: queue → worker (decode, mine, hash, columns) → template owner for unseen shapes →
 * sequencer (ids, duplicates, priorities) → wal (fsync) → answer. The writer takes it from the WAL to
 * ClickHouse on its own.
 */
export class Pipeline {
  readonly #parts: PipelineParts
  #queue: Job[] = []
  #active = 0
  #bytes = 0
  #isWoken = false
  /** tasks that are not on disk yet */
  #unsynced = 0
  #unsavedTemplates: TemplateRow[] = []
  #unsavedRegistrations: Registration[] = []
  /** the last entry in the WAL's order, those of an earlier run included */
  #last: { readonly seq: number; readonly durable: Promise<void> }
  #seenFailures = 0
  #closed = false
  readonly #inFlight = new Set<Promise<void>>()

  constructor(parts: PipelineParts) {
    this.#parts = parts
    this.#last = { seq: parts.wal.waiting.at(-1)?.seq ?? 0, durable: Promise.resolve() }
  }

  /** Whether another body of this size may come; asked before it is read. */
  room(bytes: number): boolean {
    return !this.#closed && this.#bytes + bytes <= this.#parts.maxBytes && !this.#parts.wal.isFull()
  }

  /** Bytes of the bodies in work. */
  get bytes(): number {
    return this.#bytes
  }

  /**
   * Takes one body through the pipeline.
   *
   * @returns once the accepted messages are durable; a body that was refused as a whole says why
   * @throws AppError `overloaded` without room, `dependency_unavailable` when it can't be made durable
   */
  submit(submission: Submission): Promise<BodyResult> {
    const bytes = (submission.bytes?.byteLength ?? 0) + BODY_OVERHEAD
    if (!this.room(bytes)) return Promise.reject(overloaded())
    this.#bytes += bytes
    return new Promise<BodyResult>((resolve, reject) => {
      this.#queue.push({ submission, bytes, held: bytes, resolve, reject })
      this.#wake()
    })
  }

  /** Requests of one turn of the loop share a task. */
  #wake(): void {
    if (this.#isWoken) return
    this.#isWoken = true
    setImmediate(() => {
      this.#isWoken = false
      this.#dispatch()
    })
  }

  /**
   * Puts a change between the rows before it and the rows after it.
   *
   * @returns the change's result, once it took effect
   */
  async execute(command: Command, rows: LandingRows | null = null): Promise<unknown> {
    const entry = {
      ...EMPTY,
      landing: rows?.bytes ?? null,
      landingRows: rows?.rows ?? 0,
      command,
    }
    const { seq, durable } = this.#append(entry)
    const { writer } = this.#parts
    const result = writer.resultOf(seq)
    await durable.catch((cause: unknown) => {
      writer.forget(seq)
      throw cause
    })
    await writer.flush(seq, AbortSignal.timeout(STATEMENT_WAIT_MS)).catch((cause) => {
      throw unavailable('clickhouse', cause)
    })
    return await result
  }

  /** Gives a change of all instances its place here; what is sequenced later is from after it. */
  mark(command: SharedCommand): { readonly seq: number; readonly durable: Promise<void> } {
    return this.#append({ ...EMPTY, command })
  }

  /** Resolves when everything sequenced so far is in ClickHouse. */
  async settle(): Promise<void> {
    const wait = AbortSignal.timeout(STATEMENT_WAIT_MS)
    const { seq, durable } = this.#last
    // the WAL is written in order; what could not be written will never be counted
    await durable.catch(() => undefined)
    await this.#parts.writer.flush(seq, wait).catch((cause) => {
      throw unavailable('clickhouse', cause)
    })
  }

  /** Takes over templates that other instances have stored; what that brings up is stored in turn. */
  async adopt(records: readonly TemplateRow[]): Promise<void> {
    const { pool, templates } = this.#parts
    const changes = await pool.adopt(records, () => templates.numbered())
    this.#learn(changes)
    // those the owner has no room for are shown all the same
    const unknown = records.filter(({ id }) => (templates.find(id)?.no ?? 0) === 0)
    templates.learn(unknown.map((record) => ({ ...record, no: 0 })))
    // what can't be written now goes with the next entry
    if (changes.some(({ isNews }) => isNews)) this.#append(EMPTY).durable.catch(() => undefined)
  }

  /** Takes nothing more and finishes what was begun. */
  async close(): Promise<void> {
    this.#closed = true
    while (this.#inFlight.size > 0 || this.#queue.length > 0) {
      this.#dispatch()
      await Promise.all(this.#inFlight)
    }
  }

  #dispatch(): void {
    while (this.#active < this.#parts.pool.workers && this.#isTaskDue()) {
      const jobs = this.#takeJobs()
      this.#active++
      const run: Promise<void> = this.#run({
        jobs,
        bodies: jobs.map((job) => toBody(job.submission)),
      })
        .catch((cause) => {
          for (const job of jobs) {
            this.#release(job)
            job.reject(cause)
          }
        })
        .finally(() => {
          this.#inFlight.delete(run)
        })
      this.#inFlight.add(run)
    }
  }

  /** While small bodies wait for the disk anyway, more of them gather for one task. */
  #isTaskDue(): boolean {
    const [first] = this.#queue
    if (first === undefined || this.#unsynced < UNSYNCED_TASKS) return first !== undefined
    return first.bytes >= GATHERED_BYTES || this.#queue.length >= TASK_BODIES / 2
  }

  #takeJobs(): Job[] {
    let bytes = 0
    let count = 0
    for (const job of this.#queue) {
      if (count > 0 && (bytes + job.bytes > TASK_BYTES || count >= TASK_BODIES)) break
      bytes += job.bytes
      count++
    }
    return this.#queue.splice(0, count)
  }

  async #run(task: Task): Promise<void> {
    for (let attempt = 0; attempt < MAX_TRIES; attempt++) {
      const result = await this.#encode(task, attempt === 0)
      // synchronous from this check of the sources to the place in the WAL's order
      if (!this.#admitted(task, result)) {
        result.free()
        continue
      }
      this.#unsynced++
      await this.#sequence(result, deletionOf(task.jobs, result.bodies)).finally(() => {
        this.#unsynced--
        if (this.#queue.length > 0) this.#wake()
      })
      this.#answer(task, result)
      return
    }
    throw unavailable('pipeline', null)
  }

  #answer(task: Task, { bodies }: BlockResult): void {
    for (const sum of sumsOf(task.jobs, bodies)) this.#parts.onAccepted(sum)
    task.jobs.forEach((job, i) => {
      const body = bodies[i]
      if (body === undefined) return
      this.#release(job)
      job.resolve(body)
    })
  }

  #release(job: Job): void {
    this.#bytes -= job.held
    job.held = 0
  }

  /** The task as a block in which every row has its template. */
  async #encode(task: Task, first: boolean): Promise<EncodedBlock> {
    const result = await this.#encodeOnce(task, first)
    const misses = result.block?.misses ?? null
    if (misses === null || !this.#admitted(task, result)) return result
    await this.#resolveMisses(result.block, misses).catch((cause: unknown) => {
      result.free()
      throw cause
    })
    return result
  }

  async #encodeOnce(task: Task, first: boolean): Promise<EncodedBlock> {
    const { pool, environment, maxMessageBytes, modelVersion } = this.#parts
    try {
      return await pool.encode({
        bodies: task.bodies,
        environment,
        maxMessageBytes,
        modelVersion: modelVersion(),
      })
    } catch (cause) {
      throw unavailable('workers', cause)
    } finally {
      if (first) this.#active--
      this.#dispatch()
    }
  }

  /**
   * Registers the new sources of a task and finds those that may not be stored.
   *
   * @returns false when the task must be encoded again, with the verdicts that were missing
   */
  #admitted(task: Task, result: BlockResult): boolean {
    const { sources } = this.#parts
    // of nearly all tasks; what any body stored is of these sources
    if (result.block?.sources.every((name) => sources.admit(name) === 'ok') === true) return true
    const found = task.jobs.map(({ submission }, i) =>
      this.#verdicts(result.bodies[i]?.sources ?? [], submission.register),
    )
    if (found.every((verdicts) => verdicts.length === 0)) return true
    task.bodies = task.bodies.map((body, i) => ({
      ...body,
      verdicts: { ...body.verdicts, ...Object.fromEntries(found[i] ?? []) },
    }))
    return false
  }

  #verdicts(
    sources: readonly string[],
    register: Submission['register'],
  ): [string, SourceVerdict][] {
    let found: [string, SourceVerdict][] = NO_FINDINGS
    for (const name of sources) {
      const admission = this.#parts.sources.admit(name)
      if (admission === 'ok') continue
      if (found === NO_FINDINGS) found = []
      if (admission === 'disabled') found.push([name, 'drop'])
      else if (register === null) found.push([name, 'unknown_source'])
      else if (admission === 'full') found.push([name, 'source_limit'])
      else this.#register({ name, ...register })
    }
    return found
  }

  /** Made durable with the next entry, which is this task's unless another one is faster. */
  #register(registration: Registration): void {
    this.#parts.sources.register(registration)
    this.#unsavedRegistrations.push(registration)
  }

  async #resolveMisses(block: RowBlock | null, misses: MissBlock): Promise<void> {
    if (block === null) return
    const { sources, templateNos } = block
    const { pool, templates, learnSignature } = this.#parts
    const answer = await pool
      .resolve({ misses, sources }, () => templates.numbered())
      .catch((cause) => {
        throw unavailable('workers', cause)
      })
    this.#learn(answer.changes)
    answer.nos.forEach((no, i) => {
      learnSignature(misses.shapes[i * 2] ?? 0, misses.shapes[i * 2 + 1] ?? 0, no)
    })
    misses.rows.forEach((row, i) => {
      templateNos[row] = answer.nos[misses.missOfRow[i] ?? 0] ?? 0
    })
  }

  #learn(changes: readonly MinedTemplate[]): void {
    this.#parts.templates.learn(changes)
    this.#unsavedTemplates.push(...changes.filter(({ isNews }) => isNews).map(toTemplateRow))
  }

  /** @returns once the block is durable */
  async #sequence(result: EncodedBlock, command: Command | null): Promise<void> {
    const { block, dead } = result
    if (block === null && dead === null) return
    this.#number(result)
    if (block !== null) {
      const again = this.#parts.templates.takeUnsaved(block.templateNos)
      this.#unsavedTemplates.push(...again.map(toTemplateRow))
    }
    result.keepBytes()
    const entry = {
      ...EMPTY,
      landing: block?.bytes ?? null,
      landingRows: block?.rows ?? 0,
      dead: dead?.bytes ?? null,
      command,
    }
    const { durable } = this.#append(entry, () => result.free())
    await durable
  }

  /** @throws AppError `dependency_unavailable` without ids */
  #number({ block, dead, free }: EncodedBlock): void {
    const { sequencer, wal } = this.#parts
    // events of a lost entry are known to nobody else: begin anew rather than refer to them
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

  /** @param release when the memory of `landing` is not read any more */
  #append(
    entry: Omit<LogRecord, 'templates' | 'registrations'>,
    release: (() => void) | null = null,
  ): {
    seq: number
    durable: Promise<void>
  } {
    const templates = this.#unsavedTemplates
    const registrations = this.#unsavedRegistrations.filter(
      // one that was deleted meanwhile must not come back
      ({ name }) => !['unregistered', 'full'].includes(this.#parts.sources.admit(name)),
    )
    this.#unsavedTemplates = []
    this.#unsavedRegistrations = []
    const payload = encodeRecord({ ...entry, templates, registrations })
    const { seq, durable } = this.#parts.wal.append(payload, release)
    const saved = durable.then(
      () => this.#parts.writer.notify(),
      (cause: unknown) => {
        this.#unsavedTemplates.unshift(...templates)
        this.#unsavedRegistrations.unshift(...registrations)
        throw unavailable('spool', cause)
      },
    )
    this.#last = { seq, durable: saved }
    return this.#last
  }
}

/** rows made by the main thread itself, as Native bytes */
export interface LandingRows {
  readonly bytes: Uint8Array
  readonly rows: number
}

const STATEMENT_WAIT_MS = 20_000
const EMPTY = { landing: null, landingRows: 0, dead: null, command: null }

const NO_FINDINGS: [string, SourceVerdict][] = []
/** one for all: bodies without verdicts travel together */
const NO_VERDICTS = Object.freeze({})

const toBody = (submission: Submission): BodyTask => ({
  format: submission.format,
  bytes: submission.bytes,
  events: submission.events,
  protocol: submission.protocol,
  source: submission.source,
  allowedSources: submission.allowedSources,
  keepRaw: submission.keepRaw,
  maxRows: submission.maxRows,
  verdicts: NO_VERDICTS,
})

const overloaded = (): AppError =>
  new AppError('overloaded', 'the service takes no more events right now', { retryAfterS: 1 })

const unavailable = (dependency: string, cause: unknown): AppError =>
  cause instanceof AppError
    ? cause
    : new AppError('dependency_unavailable', `${dependency} can't take the events right now`, {
        details: { dependency },
        retryAfterS: 2,
        cause,
      })
