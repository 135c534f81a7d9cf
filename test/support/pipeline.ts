import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { wholeMessage } from '../../src/model/stored-message.js'
import { PriorityModel } from '../../src/priority/model.js'
import { PriorityOverrides } from '../../src/priority/overrides.js'
import type { BodyResult } from '../../src/ingest/block.js'
import { DedupWindow } from '../../src/ingest/dedup-window.js'
import { createOnce } from '../../src/ingest/once.js'
import { createInProcessState } from '../../src/coordination/memory-state.js'
import { Pipeline } from '../../src/ingest/pipeline.js'
import type { Submission } from '../../src/ingest/submission.js'
import { createPool, type Pool } from '../../src/ingest/pool.js'
import { BufferPool } from '../../src/lib/buffer-pool.js'
import { BlockPool, type BlockSlice } from '../../src/wal/block-pool.js'
import type { SharedMemory } from '../../src/ingest/packed-task.js'
import { Sequencer } from '../../src/ingest/sequencer.js'
import { createQuarantine, type Quarantine } from '../../src/writer/quarantine.js'
import type { LogRecord, Registration, Command } from '../../src/wal/record.js'
import { Wal } from '../../src/wal/wal.js'
import type { TemplateRegistry } from '../../src/templates/registry.js'
import { createTemplateTables } from '../../src/templates/tables.js'
import type { StoredBatches } from '../../src/writer/taken.js'
import { Writer, type BatchTarget } from '../../src/writer/writer.js'
import { quietLog } from './clickhouse.js'
import { readNative } from './native.js'
import { MINUTE_MS } from '../../src/model/time.js'

/** A WAL in a directory that is deleted after the test. */
export async function createTestWal(t: Test, dir = tempDir(t)): Promise<Wal> {
  return await Wal.open({
    dir,
    maxBytes: 1024 ** 3,
    cacheBytes: 1024 ** 2,
    blockPool: new WatchedBlockPool(),
    keepOnceKeysMs: 0,
    log: { ...quietLog, error: (report, text) => t.fail(text, { report }) },
  })
}

export function tempDir(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'pipeline-test-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

export type Row = Readonly<Record<string, bigint | number | string>>

/** The rows of a block with decoded texts and whole messages. */
function toRows(bytes: Uint8Array): readonly Row[] {
  const { rows, columns } = readNative(bytes)
  return Array.from({ length: rows }, (_, row) => {
    const texts: Record<string, Row[string]> = Object.fromEntries(
      columns.map(({ name, values }) => {
        const value = values[row] ?? ''
        return [name, Buffer.isBuffer(value) ? value.toString() : value]
      }),
    )
    const { constant_text: constantText = '', variables } = texts
    if (variables === undefined) return texts
    return { ...texts, message: wholeMessage(String(constantText), String(variables)) }
  })
}

/** A target that records the calls of a writer in order; they fail while `fault` returns an error. */
export class RecordingTarget implements BatchTarget {
  readonly newToken = randomUUID
  /** Every token is known for ever. */
  readonly taken: StoredBatches = {
    later: async () => 0,
    sourcesStored: async () => new Set(),
    deadLettersAmong: async () => new Set(),
  }
  readonly calls: string[] = []
  readonly inserts: { readonly table: string; readonly token: string; readonly rows: Row[] }[] = []
  readonly templateRows: LogRecord['templates'][number][] = []
  readonly registered: Registration[] = []
  readonly commands: Command[] = []
  fault: ((call: string) => Error | null) | null = null
  /** Rows that are refused. */
  refuses: (row: Row) => boolean = () => false
  trials = 0

  async insert(table: string, parts: readonly Uint8Array[], token: string): Promise<void> {
    this.#call(`insert ${table} ${token}`)
    const rows = this.#taken(parts)
    if (rows === null) throw Object.assign(new Error('refused'), { isDataError: true })
    this.inserts.push({ table, token, rows: [...rows] })
  }

  async wouldTake(table: string, parts: readonly Uint8Array[]): Promise<boolean> {
    this.#call(`try ${table}`)
    this.trials++
    return this.#taken(parts) !== null
  }

  /** Null when the rows are refused. */
  #taken(parts: readonly Uint8Array[]): readonly Row[] | null {
    try {
      const rows = parts.flatMap((part) => toRows(part))
      return rows.some((row) => this.refuses(row)) ? null : rows
    } catch {
      return null
    }
  }

  async templates(rows: LogRecord['templates']): Promise<void> {
    this.#call('templates')
    this.templateRows.push(...rows)
  }

  async register(registrations: readonly Registration[]): Promise<void> {
    this.#call(`register ${registrations.map(({ name }) => name).join()}`)
    this.registered.push(...registrations)
  }

  async registerAgain(name: string): Promise<void> {
    this.#call(`register ${name} again`)
  }

  async execute(command: Command): Promise<unknown> {
    this.#call(`execute ${command.kind}`)
    this.commands.push(command)
    return { done: command.kind }
  }

  /** The rows of a table in a store that deduplicates by token. */
  stored(table: string): readonly Row[] {
    const seen = new Set<string>()
    return this.inserts
      .filter((insert) => {
        const isFirst = !seen.has(insert.token)
        seen.add(insert.token)
        return insert.table === table && isFirst
      })
      .flatMap((insert) => insert.rows)
  }

  async storedAmong(ids: readonly number[]): Promise<ReadonlySet<number>> {
    const begun = this.stored('landing').filter((row) => row['is_new'] === 1)
    return new Set(begun.map((row) => Number(row['id'])).filter((id) => ids.includes(id)))
  }

  #call(call: string): void {
    this.calls.push(call)
    const fault = this.fault?.(call) ?? null
    if (fault !== null) throw fault
  }
}

export interface TestRefusals {
  readonly refusals: Quarantine
  readonly refused: number[]
}

/** A quarantine whose trials go to a recording target. */
export function refusalsOf(wal: Wal, target: RecordingTarget): TestRefusals {
  const refused: number[] = []
  let letterId = 1_000_000
  const refusals = createQuarantine({
    wal,
    batches: target,
    ids: { take: () => letterId++ },
    log: quietLog,
    metrics: { rowsRefused: (rows) => refused.push(rows) },
    onRefused: () => undefined,
  })
  return { refusals, refused }
}

/** Takes what a writer tells of its batches. */
export function writerNotes() {
  const failures: unknown[] = []
  const written: number[] = []
  const fail = (fields: object): unknown => failures.push('err' in fields ? fields.err : fields)
  const notes = {
    log: { warn: fail, debug: fail },
    metrics: { batchWritten: (rows: number) => written.push(rows), batchFailed: () => undefined },
    onWritten: () => undefined,
  }
  return { notes, failures, written }
}

/** Registered sources in a Set. */
export class TestSources {
  readonly states = new Map<string, 'ok' | 'disabled'>()
  max = 1000

  admit(name: string): 'ok' | 'unregistered' | 'disabled' {
    return this.states.get(name) ?? 'unregistered'
  }

  limitOf(): 'source_limit' | null {
    return this.states.size >= this.max ? 'source_limit' : null
  }

  register({ name }: Registration): void {
    this.states.set(name, 'ok')
  }
}

export interface TestPipeline {
  readonly pipeline: Pipeline
  readonly pool: Pool
  readonly wal: Wal
  readonly writer: Writer
  readonly sequencer: Sequencer
  readonly overrides: PriorityOverrides
  readonly templates: TemplateRegistry
  readonly target: RecordingTarget
  readonly sources: TestSources
  readonly send: (lines: readonly object[], options?: Partial<Submission>) => Promise<BodyResult>
  /** The landing rows once everything sent is written. */
  readonly landing: () => Promise<readonly Row[]>
}

export const SUBMISSION: Submission = {
  owner: 'test',
  format: 'ingest',
  bytes: null,
  coding: 'identity',
  events: null,
  protocol: 'ingest',
  source: null,
  keyId: '',
  defaultSource: 'default',
  allowedSources: null,
  keepRaw: true,
  maxRows: Number.POSITIVE_INFINITY,
  replays: null,
  register: { type: 'push', connector: 'custom', applicationId: null },
}

/** A body in a buffer of its own. */
export const bodyOf = (text: string): Uint8Array<ArrayBuffer> => Uint8Array.from(Buffer.from(text))

/** A pool that reports buffers that are released twice, and overwrites free ones. */
export class WatchedBufferPool extends BufferPool {
  /** The shared buffers in use. */
  readonly inUse = new Set<ArrayBufferLike>()
  readonly #freed = new WeakSet<ArrayBufferLike>()
  readonly #t: Test

  constructor(t: Test) {
    super(64 * 1024 * 1024)
    this.#t = t
  }

  override acquire(bytes: number): ArrayBufferLike {
    const buffer = super.acquire(bytes)
    this.#freed.delete(buffer)
    if (buffer instanceof SharedArrayBuffer) this.inUse.add(buffer)
    return buffer
  }

  override release(buffer: ArrayBufferLike): void {
    if (this.#freed.has(buffer)) this.#t.fail('a buffer is released twice')
    this.#freed.add(buffer)
    new Uint8Array(buffer).fill(0xdb)
    this.inUse.delete(buffer)
    super.release(buffer)
  }
}

/** A pool that overwrites memory that is not in use. */
export class WatchedBlockPool extends BlockPool {
  readonly inUse = new Set<BlockSlice>()
  readonly #retainedBytes = new Map<BlockSlice, number>()

  constructor() {
    super(64 * 1024 * 1024)
  }

  override acquire(bytes: number): BlockSlice {
    const slice = super.acquire(bytes)
    this.inUse.add(slice)
    return slice
  }

  override retain(slice: BlockSlice, bytes: number): void {
    overwrite(slice, bytes, Math.min(slice.bytes, bytes + OVERWRITTEN_BYTES))
    this.#retainedBytes.set(slice, bytes)
    super.retain(slice, bytes)
  }

  override release(slice: BlockSlice): void {
    const bytes = this.#retainedBytes.get(slice) ?? Math.min(slice.bytes, OVERWRITTEN_BYTES)
    this.inUse.delete(slice)
    super.release(slice)
    overwrite(slice, 0, bytes)
  }
}

/** Blocks in tests are smaller. */
const OVERWRITTEN_BYTES = 1024 * 1024

const overwrite = ({ buffer, at }: BlockSlice, from: number, to: number): unknown =>
  new Uint8Array(buffer, at + from, to - from).fill(0xdb)

export interface WatchedMemory extends SharedMemory {
  readonly bufferPool: WatchedBufferPool
  readonly blockPool: WatchedBlockPool
}

export const watchedMemory = (t: Test): WatchedMemory => ({
  bufferPool: new WatchedBufferPool(t),
  blockPool: new WatchedBlockPool(),
})

interface Made {
  readonly pool?: (pool: Pool) => Pool
}

/** The whole pipeline with real threads and a real wal; batches end in a recording target. */
export async function createTestPipeline(t: Test, made: Made = {}): Promise<TestPipeline> {
  const { templates, signatures, constantTexts } = createTemplateTables()
  const shared = {
    signatures: signatures.buffer,
    constantTexts: constantTexts.buffer,
    identity: { ignoredTags: [], isDeduplicated: true },
  }
  const threads = createPool(1, { shared, memory: watchedMemory(t), ownerOf: () => '' })
  const pool = made.pool?.(threads) ?? threads
  const model = new PriorityModel()
  const overrides = new PriorityOverrides(templates)
  model.watch(templates)
  let nextId = 1
  const sequencer = new Sequencer({
    ids: { take: () => nextId++ },
    window: new DedupWindow(MINUTE_MS, 100_000),
    templates,
    model,
    overrides,
    retention: { classesOf: () => null },
  })
  const wal = await createTestWal(t)
  const target = new RecordingTarget()
  const writer = new Writer({
    wal,
    target,
    quarantine: refusalsOf(wal, target).refusals,
    ...writerNotes().notes,
  })
  const sources = new TestSources()
  await pool.restore([])
  const state = createInProcessState({ onError: () => undefined })
  const pipeline = new Pipeline({
    pool,
    once: createOnce(state, state),
    sequencer,
    wal,
    writer,
    templates,
    sources,
    signatures,
    priorities: { model },
    config: {
      environment: 'production',
      defaultTimeZone: 'UTC',
      maxMessageBytes: 65_536,
      pipelineMaxBytes: 32 * 1024 * 1024,
    },
    metrics: { stored: () => undefined, ingested: () => undefined },
    collectorStats: { note: () => undefined },
    ledger: { acknowledged: () => undefined },
  })
  writer.start()
  t.teardown(async () => {
    await pipeline.close()
    await writer.stop()
    await wal.close()
    await pool.close()
  })
  return {
    pipeline,
    pool,
    wal,
    writer,
    sequencer,
    overrides,
    templates,
    target,
    sources,
    send: (lines, options = {}) => {
      const bytes = bodyOf(lines.map((line) => JSON.stringify(line)).join('\n'))
      return pipeline.submit({ ...SUBMISSION, bytes, ...options })
    },
    landing: async () => {
      await pipeline.settle()
      return target.stored('landing')
    },
  }
}
