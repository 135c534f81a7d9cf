import { AppError } from '../model/errors.js'
import type { CanonicalEvent } from '../model/event.js'
import type {
  BlockResult,
  BodyFormat,
  BodyResult,
  BodyTask,
  RowBlock,
  SourceVerdict,
} from './block.js'
import type { Pool } from './pool.js'
import type { Sequencer } from './sequencer.js'
import type { Spool } from './spool.js'
import {
  encodeEntry,
  type EntryParts,
  type Registration,
  type Statement,
  type TemplateRow,
} from './spool-entry.js'
import type { Template, TemplateTable } from './template-table.js'
import type { Writer } from './writer.js'

/** bench/flow/ingest.ts: smaller tasks keep the threads even, larger ones save hand-overs */
const TASK_BYTES = 2 * 1024 * 1024
const TASK_BODIES = 512
/** a body counts at least this much towards the bound: its promise and task cost memory too */
const BODY_OVERHEAD = 2048
/** a source that changes on every try is not waited for */
const MAX_TRIES = 4

/** One request's messages, with what its sender may do. */
export interface Submission {
  readonly format: BodyFormat
  readonly bytes: ArrayBuffer | null
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

/** What the pipeline asks of the registered sources. */
export interface SourceGate {
  admit(name: string): 'ok' | 'unregistered' | 'full' | 'disabled'
  /** Takes effect at once; made durable with the messages that caused it. */
  register(registration: Registration): void
}

export interface PipelineParts {
  readonly pool: Pool
  readonly sequencer: Sequencer
  readonly spool: Spool
  readonly writer: Writer
  readonly templates: TemplateTable
  readonly gate: SourceGate
  readonly environment: string
  readonly maxMessageBytes: number
  /** bodies in work at once, in bytes */
  readonly maxBytes: number
  readonly modelVersion: () => string
  /** a shape belongs to a template from here on, for every thread */
  readonly learnShape: (lo: number, hi: number, templateNo: number) => void
  readonly onTemplate: (change: Template) => void
  /** @param bytes of the body */
  readonly onAccepted: (submission: Submission, result: BodyResult, bytes: number) => void
}

interface Job {
  readonly submission: Submission
  readonly bytes: number
  readonly resolve: (result: BodyResult) => void
  readonly reject: (cause: unknown) => void
}

interface Task {
  readonly jobs: readonly Job[]
  bodies: readonly BodyTask[]
}

/**
 * The way of a message: queue → worker (decode, mine, hash, columns) → template owner for unseen shapes →
 * sequencer (ids, duplicates, priorities) → spool (fsync) → answer. The writer takes it from the spool to
 * ClickHouse on its own.
 */
export class Pipeline {
  readonly #parts: PipelineParts
  #queue: Job[] = []
  #active = 0
  #bytes = 0
  #unsavedTemplates: TemplateRow[] = []
  #lastSeq = 0
  #closed = false
  readonly #inFlight = new Set<Promise<void>>()

  constructor(parts: PipelineParts) {
    this.#parts = parts
  }

  /** Whether another body of this size may come; asked before it is read. */
  room(bytes: number): boolean {
    return (
      !this.#closed && this.#bytes + bytes <= this.#parts.maxBytes && !this.#parts.spool.isFull()
    )
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
      this.#queue.push({ submission, bytes, resolve, reject })
      // requests of one turn of the loop share a task
      setImmediate(() => this.#dispatch())
    }).finally(() => {
      this.#bytes -= bytes
    })
  }

  /**
   * Puts a change between the rows before it and the rows after it.
   *
   * @returns the change's result, once it took effect
   */
  async execute(statement: Statement, rows: LandingRows | null = null): Promise<unknown> {
    const entry = {
      ...EMPTY,
      landing: rows?.bytes ?? null,
      landingRows: rows?.rows ?? 0,
      statement,
    }
    const { seq, durable } = this.#append(entry)
    const result = this.#parts.writer.resultOf(seq)
    await durable
    await this.#parts.writer.flush(seq, AbortSignal.timeout(STATEMENT_WAIT_MS)).catch((cause) => {
      throw unavailable('clickhouse', cause)
    })
    return await result
  }

  /** Resolves when everything sequenced so far is in ClickHouse. */
  async settle(): Promise<void> {
    const wait = AbortSignal.timeout(STATEMENT_WAIT_MS)
    await this.#parts.writer.flush(this.#lastSeq, wait).catch((cause) => {
      throw unavailable('clickhouse', cause)
    })
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
    while (this.#active < this.#parts.pool.workers && this.#queue.length > 0) {
      const jobs = this.#takeJobs()
      this.#active++
      const run: Promise<void> = this.#run({
        jobs,
        bodies: jobs.map((job) => toBody(job.submission)),
      })
        .catch((cause) => {
          for (const job of jobs) job.reject(cause)
        })
        .finally(() => {
          this.#inFlight.delete(run)
        })
      this.#inFlight.add(run)
    }
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
    const result = await this.#encode(task)
    const { bodies } = result
    const parts = this.#sequence(task, result)
    if (parts !== null) await this.#makeDurable(parts)
    task.jobs.forEach((job, i) => {
      const body = bodies[i]
      if (body === undefined) return
      this.#parts.onAccepted(job.submission, body, job.bytes - BODY_OVERHEAD)
      job.resolve(body)
    })
  }

  /** The task as a block in which every source may be stored and every row has its template. */
  async #encode(task: Task): Promise<BlockResult> {
    for (let attempt = 0; attempt < MAX_TRIES; attempt++) {
      const result = await this.#encodeOnce(task, attempt === 0)
      if (this.#judge(task, result)) continue
      if (result.block === null || result.block.misses === null) return result
      await this.#resolveMisses(result.block)
      // the owner was waited for: a source may have been deleted or disabled meanwhile
      if (!this.#judge(task, result)) return result
    }
    throw unavailable('pipeline', null)
  }

  async #encodeOnce(task: Task, first: boolean): Promise<BlockResult> {
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

  /** @returns whether the task must be encoded again, with the verdicts that were missing */
  #judge(task: Task, result: BlockResult): boolean {
    let again = false
    const bodies = task.bodies.map((body, i) => {
      const register = task.jobs[i]?.submission.register !== null
      const found = this.#verdicts(result.bodies[i]?.sources ?? [], register)
      const bytes = result.returned[i] ?? null
      if (found.length === 0) return { ...body, bytes }
      again = true
      return { ...body, bytes, verdicts: { ...body.verdicts, ...Object.fromEntries(found) } }
    })
    if (again) task.bodies = bodies
    return again
  }

  #verdicts(sources: readonly string[], mayRegister: boolean): [string, SourceVerdict][] {
    const found: [string, SourceVerdict][] = []
    for (const source of sources) {
      const admission = this.#parts.gate.admit(source)
      if (admission === 'disabled') found.push([source, 'drop'])
      else if (admission === 'unregistered' && !mayRegister) found.push([source, 'unknown_source'])
      else if (admission === 'full')
        found.push([source, mayRegister ? 'source_limit' : 'unknown_source'])
    }
    return found
  }

  async #resolveMisses(block: RowBlock): Promise<void> {
    const { misses, sources, templateNos } = block
    if (misses === null) return
    const { pool, templates, learnShape, onTemplate } = this.#parts
    const answer = await pool
      .resolve({ misses, sources }, () => templates.all())
      .catch((cause) => {
        throw unavailable('workers', cause)
      })
    for (const change of answer.changes) {
      templates.apply(change)
      onTemplate(change)
      this.#unsavedTemplates.push(toRow(change))
    }
    answer.nos.forEach((no, i) => {
      learnShape(misses.shapes[i * 2] ?? 0, misses.shapes[i * 2 + 1] ?? 0, no)
    })
    misses.rows.forEach((row, i) => {
      templateNos[row] = answer.nos[misses.missOfRow[i] ?? 0] ?? 0
    })
  }

  /** Synchronous from the last check of the sources to the place in the spool's order. */
  #sequence(task: Task, result: BlockResult): { seq: number; durable: Promise<void> } | null {
    const { sequencer } = this.#parts
    const { block, dead } = result
    if (block === null && dead === null) return null
    const registrations = this.#register(task, result)
    if (block !== null) {
      const again = this.#parts.templates.takeUnsaved(block.templateNos)
      this.#unsavedTemplates.push(...again.map(toRow))
      sequencer.sequence(block)
    }
    if (dead !== null) sequencer.number(dead)
    return this.#append({
      landing: block?.bytes ?? null,
      landingRows: block?.rows ?? 0,
      dead: dead?.bytes ?? null,
      templates: [],
      registrations,
      statement: replayed(task, result),
    })
  }

  #register(task: Task, result: BlockResult): Registration[] {
    const registrations: Registration[] = []
    task.jobs.forEach(({ submission }, i) => {
      for (const name of result.bodies[i]?.sources ?? []) {
        if (submission.register === null || this.#parts.gate.admit(name) !== 'unregistered')
          continue
        const registration = { name, ...submission.register }
        this.#parts.gate.register(registration)
        registrations.push(registration)
      }
    })
    return registrations
  }

  #append(entry: EntryParts): { seq: number; durable: Promise<void> } {
    const templates = this.#unsavedTemplates
    this.#unsavedTemplates = []
    const { seq, durable } = this.#parts.spool.append(encodeEntry({ ...entry, templates }))
    this.#lastSeq = seq
    const saved = durable.then(
      () => this.#parts.writer.notify(),
      (cause: unknown) => {
        // ids and templates of this entry are known to nobody else: begin anew rather than refer to them
        this.#unsavedTemplates.unshift(...templates)
        this.#parts.sequencer.forgetAll()
        throw unavailable('spool', cause)
      },
    )
    return { seq, durable: saved }
  }

  async #makeDurable(entry: { readonly durable: Promise<void> }): Promise<void> {
    await entry.durable
  }
}

/** The deletion of the dead letters that this block stores or rejects anew. */
function replayed(task: Task, result: BlockResult): Statement | null {
  const ids = task.jobs.flatMap(({ submission }, i) => {
    const body = result.bodies[i]
    const settled = body !== undefined && body.accepted + body.rejected > 0
    return submission.replays !== null && settled ? [submission.replays] : []
  })
  return ids.length === 0 ? null : { kind: 'delete-dead-letters', ids }
}

/** rows made by the main thread itself, as Native bytes */
export interface LandingRows {
  readonly bytes: Uint8Array
  readonly rows: number
}

const STATEMENT_WAIT_MS = 20_000

const EMPTY: EntryParts = {
  landing: null,
  landingRows: 0,
  dead: null,
  templates: [],
  registrations: [],
  statement: null,
}

const toBody = (submission: Submission): BodyTask => ({
  format: submission.format,
  bytes: submission.bytes,
  events: submission.events,
  protocol: submission.protocol,
  source: submission.source,
  allowedSources: submission.allowedSources,
  keepRaw: submission.keepRaw,
  maxRows: submission.maxRows,
  verdicts: {},
})

const toRow = (change: Template): TemplateRow => ({
  source: change.source,
  id: change.id,
  version: Date.now(),
  redirectTo: change.redirectId,
  text: change.text,
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
