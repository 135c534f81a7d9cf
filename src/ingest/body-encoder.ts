import { decompress, sniffCoding, type ContentCoding } from '../http/decompress.js'
import { decodeIngest, isJsonBody } from './formats/ndjson.js'
import { decodeTextLines, decodeUpload } from './formats/upload.js'
import { Zones } from './formats/zone.js'
import { decodeMsgpack, isMsgpack } from './protocols/msgpack/msgpack.js'
import type { RecordTaker } from './record-rows.js'
import { loaderOf, parserOf } from './protocols/table.js'
import type { ReplyWriter } from './protocols/protocol.js'
import type { BlockSlice } from '../wal/block-pool.js'
import { AppError } from '../model/errors.js'
import type { CanonicalEvent, DecodeContext, EventSink, Rejection } from '../model/event.js'
import {
  INGEST_BYTES,
  isOfProtocol,
  REFUSALS,
  type BlockResult,
  type BlockTask,
  type BodyRefusal,
  type BodyResult,
  type BodyTask,
  type TimeSpan,
} from './block.js'
import { BodySink, type BodyEncoders } from './body-sink.js'
import { TASK_MS } from './fair-queue.js'
import { SpentTime } from './spent-time.js'

/**
 * Encodes the bodies of a task as one block of landing rows and one of dead letters. Files are
 * decoded first, because a late row may refuse the whole file. Bodies of `/ingest` are decoded
 * directly into the block; when one turns out to be refused, the block is encoded again without it.
 * There is one encoder per thread.
 */
export class BodyEncoder {
  readonly #encoders: BodyEncoders
  readonly #taskMs: number
  readonly #zones = new Zones()

  constructor(encoders: BodyEncoders, taskMs = TASK_MS) {
    this.#encoders = encoders
    this.#taskMs = taskMs
  }

  /**
   * Encodes the first bodies of a task: those that are done within `taskMs`, and at least one.
   *
   * @param slice memory for the block, used if it is large enough
   */
  async encode(
    task: BlockTask,
    nowMs: number,
    slice: BlockSlice | null = null,
  ): Promise<BlockResult> {
    const untilMs = performance.now() + this.#taskMs
    const at = { task, nowMs, zones: this.#zones }
    const opened = await openBodies(at, untilMs)
    // No await from here on, because all tasks of the thread share the encoders.
    const { block, dead } = this.#encoders
    const results = this.#encodeAll({ ...at, untilMs, opened })
    return {
      block: block.finish(slice),
      dead: dead.finish(),
      bodies: results,
      receivedAtMs: nowMs,
    }
  }

  /** Encodes the task again when a body is refused after part of it was added to the block. */
  #encodeAll(job: Job): BodyResult[] {
    for (;;) {
      const results = this.#encodeOnce(job)
      if (results !== null) return results
      // All bodies are checked after the first refusal, so that senders cannot force many restarts.
      for (const body of job.opened) body.refusal ??= this.#denial(body, job)
    }
  }

  #encodeOnce(job: Job): BodyResult[] | null {
    const { block, dead } = this.#encoders
    block.begin(job.nowMs, job.task.modelVersion)
    dead.begin(job.nowMs)
    const results: BodyResult[] = []
    const spent = new SpentTime()
    const ids = new Set<string>()
    for (const opened of job.opened) {
      const sink = new BodySink(this.#encoders, opened.body, ids)
      opened.refusal ??= this.#fill(opened, sink, job)
      opened.ms += spent.lap()
      if (opened.refusal !== null && sink.isTouched) return null
      results.push(toResult(opened, sink))
      if (performance.now() > job.untilMs) break
    }
    return results
  }

  #fill({ body, file }: OpenedBody, sink: BodySink, at: Job): BodyRefusal | null {
    if (file !== null) {
      for (const { line, rejection } of file.rejections) sink.reject(line, rejection)
      file.events.forEach((event, i) => sink.event(file.lines[i] ?? 0, event))
    } else if (body.events !== null) {
      body.events.forEach((event, i) => sink.event(i + 1, event))
    } else {
      const refusal = refusalOf(() => {
        sink.replyWriter = decodeBody(body, contextOf(body, at), sink, sink)
      })
      if (refusal !== null) return refusal
    }
    if (body.protocol === 'ingest' && sink.isUnreadable) return UNREADABLE
    return sink.denied === null ? null : toDenial(sink.denied)
  }

  /** Checks that the body's key may write the sources of all messages. */
  #denial({ body, file }: OpenedBody, at: Job): BodyRefusal | null {
    const allowed = body.deniesRecords ? null : body.allowedSources
    if (allowed === null || body.events !== null || file !== null) return null
    let denied: string | null = null
    const check = ({ source }: { readonly source: string }): void => {
      if (source !== '' && !allowed.includes(source)) denied ??= source
    }
    const sink: EventSink = { event: (_, event) => check(event), reject: (_, one) => check(one) }
    const refusal = refusalOf(() => {
      decodeBody(body, contextOf(body, at), sink, null)
    })
    return refusal ?? (denied === null ? null : toDenial(denied))
  }
}

/** The context in which the bodies of a task are decoded. */
interface At {
  readonly task: BlockTask
  readonly nowMs: number
  readonly zones: Zones
}

interface Job extends At {
  /** When the task should end (`performance.now`). */
  readonly untilMs: number
  readonly opened: readonly OpenedBody[]
}

/** A body whose bytes are decompressed, and decoded if it is a file. */
interface OpenedBody {
  readonly body: BodyTask
  readonly file: DecodedFile | null
  /** The time that the thread has spent on it. */
  ms: number
  refusal: BodyRefusal | null
}

/** Opens the first bodies of a task, until the time is over or the decompressed ones are large. */
async function openBodies(at: At, untilMs: number): Promise<OpenedBody[]> {
  const opened: OpenedBody[] = []
  let heldBytes = 0
  for (const body of at.task.bodies) {
    if (opened.length > 0 && (performance.now() > untilMs || heldBytes > HELD_BYTES)) break
    if (isOfProtocol(body.format)) await loaderOf(body.format)?.()
    const coding = codingOf(body)
    if (coding === 'identity' && isDecodedDirectly(body)) {
      opened.push({ body, file: null, ms: 0, refusal: null })
      continue
    }
    const spent = new SpentTime()
    const next = await openBody(body, coding, contextOf(body, at))
    next.ms = spent.lap()
    heldBytes += next.body.bytes?.byteLength ?? 0
    opened.push(next)
  }
  return opened
}

/** When the opened bodies of a task have more decompressed bytes than this, no further one is opened. */
const HELD_BYTES = 4 * 1024 * 1024

const isDecodedDirectly = ({ format }: BodyTask): boolean =>
  format === 'ingest' || format === 'text' || format === 'events' || isOfProtocol(format)

/** Decodes the body of a request. @param taker takes the records that need no parsing */
function decodeBody(
  body: BodyTask,
  context: DecodeContext,
  sink: EventSink,
  taker: RecordTaker | null,
): ReplyWriter | null {
  const bytes = bytesOf(body)
  if (isOfProtocol(body.format)) {
    return parserOf(body.format)(asBuffer(bytes), context, sink, taker) ?? null
  }
  if (body.format === 'ingest' && isMsgpack(bytes)) {
    decodeMsgpack(asBuffer(bytes), context, sink)
    return null
  }
  if (body.format === 'text' && !isJsonBody(bytes)) decodeTextLines(bytes, context, sink)
  else decodeIngest(bytes, context, sink, taker)
  return null
}

async function openBody(
  packed: BodyTask,
  coding: ContentCoding,
  context: DecodeContext,
): Promise<OpenedBody> {
  try {
    const bytes = await decompress(bytesOf(packed), coding, INGEST_BYTES)
    const body = { ...packed, bytes }
    if (isDecodedDirectly(body)) return { body, file: null, ms: 0, refusal: null }
    const file = await decodeFile(body, context)
    return { body, file, ms: 0, refusal: file.refusal }
  } catch (error) {
    const refusal = toRefusal(error)
    const isPlain =
      packed.coding === 'identity' && coding === 'deflate' && refusal.code === 'bad_request'
    return { body: packed, file: null, ms: 0, refusal: isPlain ? null : refusal }
  }
}

/** The compression of a body. Files are decompressed only as declared, bodies of requests also without a declaration. */
const codingOf = ({ format, bytes, coding }: BodyTask): ContentCoding =>
  format === 'ingest' || format === 'text' || isOfProtocol(format)
    ? sniffCoding(bytes ?? NO_BYTES, coding)
    : coding

const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)

const NO_IDS: readonly string[] = []
const NO_BYTES = new Uint8Array(0)

/** The decoded rows of a file. */
interface DecodedFile {
  readonly events: readonly CanonicalEvent[]
  readonly lines: readonly number[]
  readonly rejections: readonly { readonly line: number; readonly rejection: Rejection }[]
  readonly refusal: BodyRefusal | null
}

function spanOf(events: readonly CanonicalEvent[]): TimeSpan | null {
  let [fromMs, toMs] = [Infinity, -Infinity]
  for (const { timestampMs } of events) {
    fromMs = Math.min(fromMs, timestampMs)
    toMs = Math.max(toMs, timestampMs)
  }
  return events.length === 0 ? null : { fromMs, toMs }
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

const bytesOf = (body: BodyTask): Uint8Array => body.bytes ?? NO_BYTES

const contextOf = (body: BodyTask, { task, nowMs, zones }: At): DecodeContext => ({
  nowMs,
  toUtc: zones.of(body.timeZone ?? task.timeZone),
  environment: task.environment,
  source: body.source,
  defaultSource: body.defaultSource,
  requestSource: body.requestSource,
  params: body.params,
  maxMessageBytes: task.maxMessageBytes,
  maxRows: body.maxRows,
})

const toResult = (opened: OpenedBody, sink: BodySink): BodyResult =>
  opened.refusal === null
    ? {
        ...sink.counts(),
        bytes: bytesOf(opened.body).byteLength,
        ms: opened.ms,
        span: opened.file === null ? null : spanOf(opened.file.events),
        refusal: null,
      }
    : {
        received: 0,
        accepted: 0,
        rejected: 0,
        dropped: 0,
        bytes: bytesOf(opened.body).byteLength,
        ms: opened.ms,
        errors: [],
        sources: [],
        ids: NO_IDS,
        span: null,
        refusal: opened.refusal,
        reply: null,
      }

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
  const code = REFUSALS.find((known) => known === error.code)
  if (code === undefined) throw error
  return { code, message: error.message }
}

/** The refusal of a body of `/ingest` without a line of JSON, which makes no dead letters. A replay keeps its dead letter. */
const UNREADABLE: BodyRefusal = {
  code: 'bad_request',
  message: 'no line of the body is JSON; lines of text are sent with Content-Type: text/plain',
}

const toDenial = (source: string): BodyRefusal => ({
  code: 'source_not_allowed',
  message: `the ingest key may not write to source ${JSON.stringify(source)}`,
})
