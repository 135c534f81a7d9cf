import { DeadLetterEncoder } from '../../../src/writer/dead-letter-encoder.js'
import { BlockEncoder, type Identity } from '../../../src/ingest/block-encoder.js'
import type { BlockResult, BodyTask, RowBlock } from '../../../src/ingest/block.js'
import { BodyEncoder } from '../../../src/ingest/body-encoder.js'
import { type BodyEncoders, BodySink } from '../../../src/ingest/body-sink.js'
import type { RecordTaker } from '../../../src/ingest/record-rows.js'
import { NO_VERDICTS } from '../../../src/ingest/verdicts.js'
import { AppError } from '../../../src/model/errors.js'
import { type EventSink } from '../../../src/model/event.js'
import { readNative } from '../../support/native.js'
import { NOW } from './formats/collect.js'

export const MAX_MESSAGE = 400

export const CONSTANT_TEXTS = [
  'connection from \u0001 closed after \u0001 ms',
  'connection from \u0001',
  'ERROR: disk /dev/sda1 is 97 % full',
  '\u0001 \u0001 ',
  'naïve \u0001',
  '',
]

export const createBlock = (identity: Partial<Identity> = {}): BlockEncoder =>
  new BlockEncoder(
    {
      // Some signatures are unknown.
      templateNo: (lo) => ((lo & 1) === 0 ? 0 : (lo & 0xffff) + 1),
      // Any constant text, which most messages do not match.
      templateGeneration: () => 0,
      constantText: (no) => Buffer.from(CONSTANT_TEXTS[no % CONSTANT_TEXTS.length] ?? ''),
    },
    { seed: [7, 11, 13, 17], ignoredTags: [], isDeduplicated: true, ...identity },
  )

export const createEncoders = (identity: Partial<Identity> = {}): BodyEncoders => ({
  block: createBlock(identity),
  dead: new DeadLetterEncoder(),
})

export const createEncoder = (identity: Partial<Identity> = {}): BodyEncoder =>
  new BodyEncoder(createEncoders(identity), Infinity)

const BODY: BodyTask = {
  format: 'ingest',
  bytes: null,
  coding: 'identity',
  events: null,
  protocol: 'replay',
  source: null,
  keyId: '',
  defaultSource: 'nameless',
  requestSource: '',
  params: '',
  isRepeat: false,
  deniesRecords: false,
  repeats: new Set<string>(),
  allowedSources: null,
  keepRaw: true,
  maxRows: Number.POSITIVE_INFINITY,
  timeZone: null,
  verdicts: NO_VERDICTS,
}

export const encode = (
  encoder: BodyEncoder,
  bodies: readonly Partial<BodyTask>[],
): Promise<BlockResult> =>
  encoder.encode(
    {
      bodies: bodies.map((body) => ({ ...BODY, ...body })),
      environment: 'production',
      timeZone: 'UTC',
      maxMessageBytes: MAX_MESSAGE,
      modelVersion: 'v1',
    },
    NOW,
  )

export function bytesOf(body: string | Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = Buffer.from(body)
  const own = new Uint8Array(bytes.length)
  own.set(bytes)
  return own
}

/** All contents of a block, in a form that can be compared. */
export function shown(block: RowBlock | null): unknown {
  if (block === null) return null
  const { columns, rows } = readNative(block.bytes)
  const misses = block.misses
  return {
    rows,
    columns: columns.map(({ name, type, values }) => [name, type, values.map(String)]),
    hashes: [...block.hashes],
    tsMs: [...block.tsMs],
    counts: [...block.counts],
    severities: [...block.severities],
    sources: [...block.sourceIndexes].map((index) => block.sources[index]),
    templateNos: [...block.templateNos],
    misses: misses === null ? null : [[...misses.signatures], [...misses.rows], [...misses.bytes]],
  }
}

/**
 * Reads a body twice: to objects alone, and with WebAssembly, which takes what it reads without them.
 *
 * @returns what is stored of it either way, or why it is refused, in a form that can be compared
 */
export function readBothWays(
  encoders: BodyEncoders,
  read: (sink: EventSink, taker: RecordTaker | null) => void,
): readonly [objects: unknown, taken: unknown] {
  const once = (isTaken: boolean): unknown => {
    encoders.block.begin(NOW, 'v1')
    encoders.dead.begin(NOW)
    const sink = new BodySink(encoders, BODY, new Set())
    try {
      read(sink, isTaken ? sink : null)
    } catch (error) {
      if (error instanceof AppError) return { code: error.code, message: error.message }
      throw error
    }
    const letters = Buffer.from(encoders.dead.finish()?.bytes ?? '').toString('latin1')
    return { block: shown(encoders.block.finish()), letters, counts: sink.counts() }
  }
  return [once(false), once(true)]
}
