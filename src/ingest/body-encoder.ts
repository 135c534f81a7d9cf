import { isUtf8 } from 'node:buffer'

import { decodeIngest, type LineTaker } from './formats/ndjson.js'
import { decodeUpload } from './formats/upload.js'
import type { BlockSlice } from '../lib/block-pool.js'
import { levelAtHead } from '../templates/head-level.js'
import { AppError } from '../model/errors.js'
import {
  SEVERITIES,
  type CanonicalEvent,
  type DecodeContext,
  type EventSink,
  type Rejection,
} from '../model/event.js'
import type { Admission, BlockEncoder } from './block-encoder.js'
import type {
  BlockResult,
  BlockTask,
  BodyRefusal,
  BodyResult,
  BodyTask,
  LineError,
  SourceVerdict,
} from './block.js'
import type { DeadLetterEncoder } from '../writer/dead-letter-encoder.js'

/** Limit of errors in a reply. */
const REPORTED_ERRORS = 20
const INFO = SEVERITIES.indexOf('INFO')

export interface BodyEncoders {
  readonly block: BlockEncoder
  readonly dead: DeadLetterEncoder
}

/**
 * Encodes the bodies of a task as one block of landing rows and one of dead letters. Files are decoded first, because a
 * late row may refuse the whole file; bodies of `/ingest` are decoded directly into the block, which is encoded again
 * without a body that turns out to be refused. There is one encoder per thread.
 */
export class BodyEncoder {
  readonly #encoders: BodyEncoders

  constructor(encoders: BodyEncoders) {
    this.#encoders = encoders
  }

  /** @param slice memory for the block, used if it is large enough */
  async encode(
    task: BlockTask,
    nowMs: number,
    slice: BlockSlice | null = null,
  ): Promise<BlockResult> {
    const files = new Map<BodyTask, DecodedFile>()
    const refusals = new Map<BodyTask, BodyRefusal>()
    for (const body of task.bodies) {
      if (body.format === 'ingest' || body.format === 'events') continue
      const file = await decodeFile(body, contextOf(body, task, nowMs))
      files.set(body, file)
      if (file.refusal !== null) refusals.set(body, file.refusal)
    }
    // No await from here on, because all tasks of the thread share the encoders.
    const { block, dead } = this.#encoders
    const results = this.#encodeAll({ task, nowMs, files, refusals })
    return {
      block: block.finish(slice),
      dead: dead.finish(),
      bodies: results,
    }
  }

  /** Encodes the task again when a body is refused after part of it was added to the block. */
  #encodeAll(job: Job): BodyResult[] {
    for (;;) {
      const results = this.#encodeOnce(job)
      if (results !== null) return results
      // All bodies are checked after the first refusal, so that senders cannot force many restarts.
      for (const body of job.task.bodies) {
        const denied = job.refusals.has(body) ? null : this.#denial(body, job)
        if (denied !== null) job.refusals.set(body, denied)
      }
    }
  }

  #encodeOnce(job: Job): BodyResult[] | null {
    const { block, dead } = this.#encoders
    block.begin(job.nowMs, job.task.modelVersion)
    dead.begin(job.nowMs)
    const results: BodyResult[] = []
    for (const body of job.task.bodies) {
      const sink = new BodySink(this.#encoders, body)
      const refusal = job.refusals.get(body) ?? this.#fill(body, sink, job)
      if (refusal !== null && sink.isTouched) {
        job.refusals.set(body, refusal)
        return null
      }
      results.push(refusal === null ? sink.result() : refused(refusal))
    }
    return results
  }

  #fill(body: BodyTask, sink: BodySink, { task, nowMs, files }: Job): BodyRefusal | null {
    const file = files.get(body)
    if (file !== undefined) {
      for (const { line, rejection } of file.rejections) sink.reject(line, rejection)
      file.events.forEach((event, i) => sink.event(file.lines[i] ?? 0, event))
    } else if (body.events !== null) {
      body.events.forEach((event, i) => sink.event(i + 1, event))
    } else {
      const refusal = refusalOf(() => {
        decodeIngest(bytesOf(body), contextOf(body, task, nowMs), sink, sink)
      })
      if (refusal !== null) return refusal
    }
    return sink.denied === null ? null : toDenial(sink.denied)
  }

  /** Checks that the body's key may write the sources of all messages. */
  #denial(body: BodyTask, { task, nowMs, files }: Job): BodyRefusal | null {
    const allowed = body.allowedSources
    if (allowed === null || body.format !== 'ingest' || files.has(body)) return null
    let denied: string | null = null
    const check = (source: string): void => {
      if (!allowed.includes(source)) denied ??= source
    }
    const sink: EventSink = {
      event: (_line, event) => check(event.source),
      reject: () => undefined,
    }
    const refusal = refusalOf(() => {
      decodeIngest(bytesOf(body), contextOf(body, task, nowMs), sink)
    })
    return refusal ?? (denied === null ? null : toDenial(denied))
  }
}

interface Job {
  readonly task: BlockTask
  readonly nowMs: number
  readonly files: ReadonlyMap<BodyTask, DecodedFile>
  readonly refusals: Map<BodyTask, BodyRefusal>
}

/** Adds the messages of one body to the block or to the dead letters, and counts them. */
class BodySink implements EventSink, LineTaker {
  readonly #encoders: BodyEncoders
  readonly #body: BodyTask
  readonly #errors: LineError[] = []
  readonly #sources = new Set<string>()
  #accepted = 0
  #rejected = 0
  #dropped = 0
  /** The first source that the body's key may not write. */
  denied: string | null = null

  constructor(encoders: BodyEncoders, body: BodyTask) {
    this.#encoders = encoders
    this.#body = body
  }

  /** Whether the block or the dead letters contain part of the body. */
  get isTouched(): boolean {
    return this.#accepted + this.#rejected > 0
  }

  begin(bytes: Uint8Array, context: DecodeContext): boolean {
    if (context.source !== null) return false
    this.#encoders.block.beginBody(bytes, { ...context, isUtf8: isUtf8(bytes) }, (source) =>
      this.#admit(source),
    )
    return true
  }

  take(from: number, most: number): { readonly next: number; readonly taken: number } {
    const { next, accepted, dropped } = this.#encoders.block.readLines(from, most)
    this.#accepted += accepted
    this.#dropped += dropped
    return { next, taken: accepted + dropped }
  }

  event(line: number, event: CanonicalEvent): void {
    const verdict = verdictOf(this.#body, event.source)
    if (!this.#mayWrite(event.source)) return
    if (verdict === 'drop') this.#dropped++
    else if (verdict !== undefined) this.reject(line, unstorable(event, verdict))
    else {
      const severity = event.severity ?? levelAtHead(event.message)
      this.#encoders.block.add(event, severity === null ? INFO : SEVERITIES.indexOf(severity))
      this.#sources.add(event.source)
      this.#accepted++
    }
  }

  reject(line: number, rejection: Rejection): void {
    this.#rejected++
    if (this.#errors.length < REPORTED_ERRORS)
      this.#errors.push({ line, code: rejection.reason, message: rejection.message })
    const raw = this.#body.keepRaw ? rejection.raw : ''
    // The source of a file's rows is that of the upload.
    const source = rejection.source === '' ? (this.#body.source ?? '') : rejection.source
    this.#encoders.dead.add(this.#body.protocol, line, { ...rejection, source, raw })
  }

  result(): BodyResult {
    const [accepted, rejected, dropped] = [this.#accepted, this.#rejected, this.#dropped]
    return {
      received: accepted + rejected + dropped,
      accepted,
      rejected,
      dropped,
      errors: this.#errors.toSorted((a, b) => a.line - b.line),
      sources: [...this.#sources],
      refusal: null,
    }
  }

  /** Called once for each source of the lines that WebAssembly reads. */
  #admit(source: string): Admission {
    const { allowedSources } = this.#body
    const verdict = verdictOf(this.#body, source)
    const denied = allowedSources !== null && !allowedSources.includes(source)
    if (denied || (verdict !== undefined && verdict !== 'drop')) return 'parse'
    if (verdict === 'drop') return 'drop'
    this.#sources.add(source)
    return 'store'
  }

  #mayWrite(source: string): boolean {
    const { allowedSources } = this.#body
    if (this.denied === null && allowedSources !== null && !allowedSources.includes(source))
      this.denied = source
    return this.denied === null
  }
}

/** Reads an own property only, because a source may be called like a property of Object.prototype. */
const verdictOf = ({ verdicts }: BodyTask, source: string): SourceVerdict | undefined =>
  Object.hasOwn(verdicts, source) ? verdicts[source] : undefined

/** The decoded rows of a file. */
interface DecodedFile {
  readonly events: readonly CanonicalEvent[]
  readonly lines: readonly number[]
  readonly rejections: readonly { readonly line: number; readonly rejection: Rejection }[]
  readonly refusal: BodyRefusal | null
}

async function decodeFile(body: BodyTask, context: DecodeContext): Promise<DecodedFile> {
  const events: CanonicalEvent[] = []
  const lines: number[] = []
  const rejections: { line: number; rejection: Rejection }[] = []
  const sink: EventSink = {
    event(line, event) {
      events.push(event)
      lines.push(line)
    },
    reject(line, rejection) {
      rejections.push({ line, rejection })
    },
  }
  try {
    if (body.format === 'csv' || body.format === 'json' || body.format === 'txt')
      await decodeUpload(body.format, bytesOf(body), context, sink)
    return { events, lines, rejections, refusal: null }
  } catch (error) {
    return { events: [], lines: [], rejections: [], refusal: toRefusal(error) }
  }
}

const bytesOf = (body: BodyTask): Uint8Array => body.bytes ?? new Uint8Array(0)

const contextOf = (body: BodyTask, task: BlockTask, nowMs: number): DecodeContext => ({
  nowMs,
  environment: task.environment,
  source: body.source,
  maxMessageBytes: task.maxMessageBytes,
  maxRows: body.maxRows,
})

const refused = (refusal: BodyRefusal): BodyResult => ({
  received: 0,
  accepted: 0,
  rejected: 0,
  dropped: 0,
  errors: [],
  sources: [],
  refusal,
})

function refusalOf(decode: () => void): BodyRefusal | null {
  try {
    decode()
    return null
  } catch (error) {
    return toRefusal(error)
  }
}

/** Returns the refusal that an error stands for. @throws any other error */
function toRefusal(error: unknown): BodyRefusal {
  if (!(error instanceof AppError)) throw error
  const { code, message } = error
  if (code === 'validation_error' || code === 'file_parse_error' || code === 'empty_file')
    return { code, message }
  throw error
}

const toDenial = (source: string): BodyRefusal => ({
  code: 'source_not_allowed',
  message: `the ingest key may not write to source ${JSON.stringify(source)}`,
})

const UNSTORABLE = {
  unknown_source: 'the source is not registered and the ingest key may not register it',
  source_limit: 'no more sources can be registered (MAX_SOURCES)',
}

function unstorable(event: CanonicalEvent, reason: 'unknown_source' | 'source_limit'): Rejection {
  return {
    reason,
    message: UNSTORABLE[reason],
    source: event.source,
    raw: JSON.stringify(toIngestRecord(event)),
  }
}

/** Writes an event as `/ingest` accepts it, for a later replay. */
function toIngestRecord(event: CanonicalEvent): Record<string, unknown> {
  const { timestampMs, traceId, spanId, dedupKey, template, ...fields } = event
  const record: Record<string, unknown> = {
    timestamp: new Date(timestampMs).toISOString(),
    ...fields,
    trace_id: traceId,
    span_id: spanId,
    dedup_key: dedupKey,
    'log.record.template': template,
  }
  return Object.fromEntries(
    Object.entries(record).filter(([, value]) => value !== '' && value !== null),
  )
}
