import { threadId, workerData } from 'node:worker_threads'
import { move, transferableSymbol, valueSymbol } from 'piscina'

import { decodeIngest } from '../collector/ndjson.js'
import { decodeUpload } from '../collector/upload.js'
import { levelAtHead } from '../mining/head-level.js'
import { scanShape, sourceSeed } from '../mining/scan.js'
import { ShapeCache } from '../mining/shape-cache.js'
import { AppError } from '../model/errors.js'
import { SEVERITIES, type CanonicalEvent, type EventSink, type Rejection } from '../model/event.js'
import { BlockEncoder } from './block-encoder.js'
import { DeadLetterEncoder } from './dead-letter-encoder.js'
import type { BlockTask, BodyRefusal, BodyResult, BodyTask, LineError, RowBlock } from './block.js'
import { packResult, unpackTask, type PackedResult, type PackedTask } from './packed-task.js'

/** What each thread is started with. */
export interface WorkerSetup {
  readonly shapes: SharedArrayBuffer
  /** random per process: senders can't aim for a collision */
  readonly hashSeed: readonly [number, number]
}

/** the first errors of a body are told to its sender */
const TOLD_ERRORS = 20
const INFO = SEVERITIES.indexOf('INFO')

const setup = workerData as WorkerSetup // given by pool.ts, which is typed
const shapes = new ShapeCache(setup.shapes)
const encoder = new BlockEncoder(
  {
    sourceSeed,
    scanShape: (bytes, range, seed, out) =>
      scanShape(bytes, range.start, range.end, seed[0] ?? 0, seed[1] ?? 0, out),
    templateNo: (lo, hi) => shapes.get(lo, hi),
  },
  Int32Array.from(setup.hashSeed),
)
const deadLetters = new DeadLetterEncoder()

/** Decodes, mines and hashes the bodies of one task into one block. Runs in a worker thread. */
export async function encodeBlock(packed: PackedTask): Promise<PackedResult> {
  const task = unpackTask(packed)
  const nowMs = Date.now()
  const decoded: DecodedBody[] = []
  for (const body of task.bodies) decoded.push(await decode(body, task, nowMs))
  // nothing awaits from here on: encoder and dead letters belong to this task alone
  encoder.begin(nowMs, task.modelVersion)
  deadLetters.begin(nowMs)
  const bodies = decoded.map((body, i) => encodeBody(body, task.bodies[i]))
  const [block, dead] = [encoder.finish(), deadLetters.finish()]
  return moved(packResult({ block, dead, bodies }, packed))
}

interface DecodedBody {
  readonly received: number
  readonly events: readonly CanonicalEvent[]
  readonly lines: readonly number[]
  readonly rejections: readonly { readonly line: number; readonly rejection: Rejection }[]
  readonly refusal: BodyRefusal | null
}

const refused = (refusal: BodyRefusal): DecodedBody => ({
  received: 0,
  events: [],
  lines: [],
  rejections: [],
  refusal,
})

async function decode(body: BodyTask, task: BlockTask, nowMs: number): Promise<DecodedBody> {
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
    const received = await decodeInto(body, task, nowMs, sink)
    const denied = firstDenied(body.allowedSources, events)
    if (denied) return refused(denied)
    return { received, events, lines, rejections, refusal: null }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return refused(toRefusal(error))
  }
}

function toRefusal(error: AppError): BodyRefusal {
  const { code, message } = error
  if (code === 'validation_error' || code === 'file_parse_error' || code === 'empty_file')
    return { code, message }
  throw error
}

async function decodeInto(
  body: BodyTask,
  task: BlockTask,
  nowMs: number,
  sink: EventSink,
): Promise<number> {
  if (body.events !== null) {
    body.events.forEach((event, i) => sink.event(i + 1, event))
    return body.events.length
  }
  const bytes = new Uint8Array(body.bytes ?? new ArrayBuffer(0))
  const context = {
    nowMs,
    environment: task.environment,
    source: body.source,
    maxMessageBytes: task.maxMessageBytes,
    maxRows: body.maxRows,
  }
  if (body.format === 'csv' || body.format === 'json' || body.format === 'txt')
    return await decodeUpload(body.format, bytes, context, sink)
  return decodeIngest(bytes, context, sink)
}

function firstDenied(
  allowed: readonly string[] | null,
  events: readonly CanonicalEvent[],
): BodyRefusal | null {
  if (allowed === null) return null
  const denied = events.find((event) => !allowed.includes(event.source))
  if (denied === undefined) return null
  return {
    code: 'source_not_allowed',
    message: `the ingest key may not write to source ${JSON.stringify(denied.source)}`,
  }
}

function encodeBody(decoded: DecodedBody, body: BodyTask | undefined): BodyResult {
  const errors: LineError[] = []
  const sources = new Set<string>()
  let [accepted, rejected, dropped] = [0, 0, 0]
  const reject = (line: number, rejection: Rejection): void => {
    rejected++
    if (errors.length < TOLD_ERRORS)
      errors.push({ line, code: rejection.reason, message: rejection.message })
    const raw = body?.keepRaw === true ? rejection.raw : ''
    deadLetters.add(body?.protocol ?? 'ingest', line, { ...rejection, raw })
  }
  for (const { line, rejection } of decoded.rejections) reject(line, rejection)
  decoded.events.forEach((event, i) => {
    const verdict = body?.verdicts[event.source]
    if (verdict === 'drop') dropped++
    else if (verdict !== undefined) reject(decoded.lines[i] ?? 0, unstorable(event, verdict))
    else {
      encoder.add(event, severityOf(event))
      sources.add(event.source)
      accepted++
    }
  })
  errors.sort((a, b) => a.line - b.line)
  const { refusal, received } = decoded
  return { received, accepted, rejected, dropped, errors, sources: [...sources], refusal }
}

const severityOf = (event: CanonicalEvent): number => {
  const severity = event.severity ?? levelAtHead(event.message)
  return severity === null ? INFO : SEVERITIES.indexOf(severity)
}

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

/** The event as `/ingest` takes it, for a later replay. */
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

/** Hands the result's buffers over instead of copying them. */
function moved(result: PackedResult): PackedResult {
  const buffers = [
    ...result.returned,
    ...(result.block === null ? [] : buffersOf(result.block)),
    result.dead?.bytes.buffer ?? null,
  ].filter((buffer) => buffer !== null)
  return move({
    get [transferableSymbol]() {
      return buffers
    },
    get [valueSymbol]() {
      return result
    },
  }) as unknown as PackedResult // piscina unwraps the value on the other side
}

function buffersOf(block: RowBlock): ArrayBuffer[] {
  const arrays: Uint8Array<ArrayBuffer>[] = [block.bytes, block.severities]
  const buffers = arrays.map((array) => array.buffer)
  buffers.push(
    block.hashes.buffer,
    block.tsMs.buffer,
    block.counts.buffer,
    block.sourceIndexes.buffer,
    block.templateNos.buffer,
  )
  if (block.misses !== null) buffers.push(block.misses.bytes.buffer)
  return buffers
}

/** For a readiness check: which thread answers. */
export const ping = (): number => threadId
