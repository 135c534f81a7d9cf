import { POOLED_FROM, type BufferPool } from '../lib/buffer-pool.js'
import type { BlockSlice, BlockPool } from '../wal/block-pool.js'
import type {
  BlockResult,
  BlockTask,
  BodyResult,
  BodyTask,
  EncodedBlock,
  LineError,
  RowBlock,
} from './block.js'
import type { DeadBlock } from '../writer/dead-letter-encoder.js'

/** A task in the form that is sent to a worker. Bodies that differ only in their bytes are joined. */
export interface PackedTask extends Omit<BlockTask, 'bodies'> {
  readonly runs: readonly Run[]
  /** Memory for the block; null when the block will be small. */
  readonly slice: BlockSlice | null
}

/** Bodies one after another, in the order of the task. */
interface Run {
  /** The common properties of the bodies; `bytes` is set only for a single body. */
  readonly body: BodyTask
  /** Null for a single body. */
  readonly small: { readonly bytes: Uint8Array; readonly ends: Uint32Array } | null
}

/** A result in the form that a worker sends back. */
export interface PackedResult {
  readonly block: RowBlock | null
  readonly dead: DeadBlock | null
  readonly receivedAtMs: number
  /** For each body: received, accepted, rejected, dropped, bytes, microseconds. */
  readonly counts: Uint32Array
  /** For each body: 1 + the index of its source, 0 without one. */
  readonly sourceOf: Uint32Array
  readonly sources: readonly string[]
  /** The results of bodies with errors, a refusal, several sources, a time span or a reply. */
  readonly others: readonly (readonly [index: number, result: BodyResult])[]
  /** Whether the block is in the slice of the task. */
  readonly isSliceUsed: boolean
}

/** Larger bodies have a buffer of their own, which costs as much as copying this many bytes (bench/flow/ingest.ts --small). */
const SMALL_BYTES = 16_384

export interface Parcel {
  readonly packed: PackedTask
  /** Unpacks a result together with its memory. */
  readonly unpack: (result: PackedResult) => EncodedBlock
  /** Releases the memory that is not part of the result; called when no worker has the task any more. */
  readonly release: () => void
}

/** The shared memory through which tasks and blocks pass between threads. */
export interface SharedMemory {
  readonly bufferPool: BufferPool
  readonly blockPool: BlockPool
}

/**
 * Packs a task for a worker. Bodies that are not in shared memory are copied to it.
 *
 * @param blockBytes estimate of the block's size
 */
export function packTask(
  task: BlockTask,
  { bufferPool, blockPool }: SharedMemory,
  blockBytes: number,
): Parcel {
  const { bodies, ...rest } = task
  const buffers: ArrayBufferLike[] = []
  const acquire = (bytes: number): Uint8Array => {
    const buffer = bufferPool.acquire(bytes)
    buffers.push(buffer)
    return new Uint8Array(buffer, 0, bytes)
  }
  const runs: Run[] = []
  for (let from = 0, to = 0; from < bodies.length; from = to) {
    to = endOfRun(bodies, from)
    runs.push(toRun(bodies.slice(from, to), acquire))
  }
  const slice = blockBytes < POOLED_FROM ? null : blockPool.acquire(blockBytes)
  let isSliceUsed = false
  return {
    packed: { ...rest, runs, slice },
    unpack: (result) => {
      isSliceUsed = result.isSliceUsed
      const { block, dead, receivedAtMs } = result
      const memory = isSliceUsed ? memoryOf(block, slice, blockPool) : NO_MEMORY
      return { block, dead, receivedAtMs, bodies: toBodyResults(result), ...memory }
    },
    release: () => {
      for (const buffer of buffers) bufferPool.release(buffer)
      if (slice !== null && !isSliceUsed) blockPool.release(slice)
    },
  }
}

type Memory = Pick<EncodedBlock, 'retain' | 'release'>

/** The memory functions of a block that is garbage-collected. */
const NO_MEMORY: Memory = { retain: () => undefined, release: () => undefined }

function memoryOf(block: RowBlock | null, slice: BlockSlice | null, pool: BlockPool): Memory {
  if (block === null || slice === null) throw new Error('bug: a slice without a block')
  return {
    retain: () => pool.retain(slice, block.bytes.length),
    release: () => pool.release(slice),
  }
}

/** @returns the end of the bodies that can be joined with the body at `from` */
function endOfRun(bodies: readonly BodyTask[], from: number): number {
  const first = bodies[from]
  let to = from + 1
  if (first === undefined || !isSmall(first)) return to
  for (let next = bodies[to]; next !== undefined && isSmall(next); next = bodies[++to])
    if (!isAlike(first, next)) break
  return to
}

const isSmall = ({ bytes }: BodyTask): boolean => bytes !== null && bytes.byteLength <= SMALL_BYTES

const isAlike = (a: BodyTask, b: BodyTask): boolean => isReadAlike(a, b) && hasEqualRights(a, b)

const isReadAlike = (a: BodyTask, b: BodyTask): boolean =>
  a.format === b.format &&
  a.coding === b.coding &&
  a.protocol === b.protocol &&
  a.source === b.source &&
  a.defaultSource === b.defaultSource &&
  a.requestSource === b.requestSource &&
  a.params === b.params &&
  a.timeZone === b.timeZone

const hasEqualRights = (a: BodyTask, b: BodyTask): boolean =>
  a.keyId === b.keyId &&
  a.allowedSources === b.allowedSources &&
  a.keepRaw === b.keepRaw &&
  a.maxRows === b.maxRows &&
  a.isRepeat === b.isRepeat &&
  a.deniesRecords === b.deniesRecords &&
  a.verdicts === b.verdicts &&
  a.repeats === b.repeats

function toRun(bodies: readonly BodyTask[], acquire: (bytes: number) => Uint8Array): Run {
  const [body] = bodies
  if (body === undefined) throw new Error('bug: a run of no body')
  if (!isSmall(body)) return { body: { ...body, bytes: shared(body.bytes, acquire) }, small: null }
  const ends = new Uint32Array(bodies.length)
  let length = 0
  bodies.forEach(({ bytes }, i) => {
    length += bytes?.byteLength ?? 0
    ends[i] = length
  })
  const joined = acquire(length)
  bodies.forEach(({ bytes }, i) => {
    if (bytes !== null) joined.set(bytes, i === 0 ? 0 : ends[i - 1])
  })
  return { body: { ...body, bytes: null }, small: { bytes: joined, ends } }
}

function shared(
  bytes: Uint8Array | null,
  acquire: (bytes: number) => Uint8Array,
): Uint8Array | null {
  if (bytes === null || bytes.buffer instanceof SharedArrayBuffer) return bytes
  const copy = acquire(bytes.length)
  copy.set(bytes)
  return copy
}

/** Unpacks a task; small bodies are views of one buffer. */
export function unpackTask(packed: PackedTask): BlockTask {
  const { runs, environment, timeZone, maxMessageBytes, modelVersion } = packed
  const bodies: BodyTask[] = []
  for (const { body, small } of runs) {
    if (small === null) {
      bodies.push(body)
      continue
    }
    let start = 0
    for (const end of small.ends) {
      bodies.push({ ...body, bytes: small.bytes.subarray(start, end) })
      start = end
    }
  }
  return { bodies, environment, timeZone, maxMessageBytes, modelVersion }
}

/** Numbers of a body in `counts`. */
const COUNTS = 6

export function packResult(
  { block, dead, bodies, receivedAtMs }: BlockResult,
  { slice }: Pick<PackedTask, 'slice'>,
): PackedResult {
  const counts = new Uint32Array(bodies.length * COUNTS)
  const sourceOf = new Uint32Array(bodies.length)
  const indexOf = new Map<string, number>()
  const others: [number, BodyResult][] = []
  bodies.forEach((body, i) => {
    const { received, accepted, rejected, dropped, bytes, ms, sources } = body
    if (isOther(body)) {
      others.push([i, body])
      return
    }
    counts.set([received, accepted, rejected, dropped, bytes, ms * 1000], i * COUNTS)
    const [source] = sources
    if (source !== undefined) sourceOf[i] = 1 + indexIn(indexOf, source)
  })
  const isSliceUsed = slice !== null && block?.bytes.buffer === slice.buffer
  return {
    block,
    dead,
    receivedAtMs,
    counts,
    sourceOf,
    sources: [...indexOf.keys()],
    others,
    isSliceUsed,
  }
}

/** Whether a result has more than counts and one source. */
const isOther = ({ refusal, errors, sources, ids, span, reply }: BodyResult): boolean =>
  refusal !== null ||
  errors.length > 0 ||
  sources.length > 1 ||
  ids.length > 0 ||
  span !== null ||
  reply !== null

function indexIn(indexOf: Map<string, number>, text: string): number {
  const known = indexOf.get(text)
  if (known !== undefined) return known
  indexOf.set(text, indexOf.size)
  return indexOf.size - 1
}

function toBodyResults(packed: PackedResult): BodyResult[] {
  const { counts, sourceOf } = packed
  const others = new Map(packed.others)
  const lists = packed.sources.map((source) => [source])
  return Array.from(sourceOf, (source, i) => {
    const other = others.get(i)
    if (other !== undefined) return other
    return {
      received: counts[i * COUNTS] ?? 0,
      accepted: counts[i * COUNTS + 1] ?? 0,
      rejected: counts[i * COUNTS + 2] ?? 0,
      dropped: counts[i * COUNTS + 3] ?? 0,
      bytes: counts[i * COUNTS + 4] ?? 0,
      ms: (counts[i * COUNTS + 5] ?? 0) / 1000,
      errors: NO_ERRORS,
      sources: lists[source - 1] ?? NO_SOURCES,
      ids: NO_SOURCES,
      span: null,
      refusal: null,
      reply: null,
    }
  })
}

const NO_ERRORS: readonly LineError[] = []
const NO_SOURCES: readonly string[] = []
