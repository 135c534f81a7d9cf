import { createRequire } from 'node:module'
import { PbfWriter } from 'pbf'

export const OTLP_TRACE = '5b8efff798038103d269b633813fc60c'
export const OTLP_SPAN = 'eee19b7ec3c1b174'
/** 2026-11-21T09:28:19 in nanoseconds. */
export const OTLP_TIME = `${Date.UTC(2026, 10, 21, 9, 28, 19)}123456`

/** Two equal log records of OTLP in protobuf, of which some fields are unknown. */
export function protobufLogs(): Uint8Array {
  const pbf = new PbfWriter()
  const attribute = ([key, value]: readonly [string, string], to: PbfWriter): void => {
    to.writeStringField(1, key)
    to.writeMessage(2, (content: string, any: PbfWriter) => any.writeStringField(1, content), value)
  }
  const record = (_: null, to: PbfWriter): void => {
    to.writeFixed64Field(1, Number(OTLP_TIME))
    to.writeVarintField(2, 17)
    to.writeMessage(5, (body: string, any: PbfWriter) => any.writeStringField(1, body), 'no money')
    to.writeMessage(6, attribute, ['order', 'o-1'] as const)
    to.writeFixed32Field(8, 1)
    to.writeBytesField(9, Buffer.from(OTLP_TRACE, 'hex'))
    to.writeBytesField(10, Buffer.from(OTLP_SPAN, 'hex'))
    to.writeStringField(99, 'unknown')
  }
  const scope = (_: null, to: PbfWriter): void => {
    to.writeMessage(1, (name: string, s: PbfWriter) => s.writeStringField(1, name), 'lib')
    to.writeMessage(2, record, null)
    to.writeMessage(2, record, null)
  }
  const resource = (_: null, to: PbfWriter): void => {
    to.writeMessage(
      1,
      (pair: readonly [string, string], r: PbfWriter) => r.writeMessage(1, attribute, pair),
      ['service.name', 'checkout'] as const,
    )
    to.writeMessage(2, scope, null)
  }
  pbf.writeMessage(1, resource, null)
  return pbf.finish()
}

interface LokiEntry {
  readonly timeMs: number
  readonly line: string
  readonly metadata?: Readonly<Record<string, string>>
}

/** A push request of Loki in protobuf. */
export function lokiPush(labels: string, entries: readonly LokiEntry[]): Uint8Array {
  const pbf = new PbfWriter()
  const pair = ([name, value]: readonly [string, string], to: PbfWriter): void => {
    to.writeStringField(1, name)
    to.writeStringField(2, value)
  }
  const entry = ({ timeMs, line, metadata = {} }: LokiEntry, to: PbfWriter): void => {
    const time = (ms: number, at: PbfWriter): void => {
      at.writeVarintField(1, Math.floor(ms / 1000))
      at.writeVarintField(2, (ms % 1000) * 1e6)
    }
    to.writeMessage(1, time, timeMs)
    to.writeStringField(2, line)
    for (const each of Object.entries(metadata)) to.writeMessage(3, pair, each)
  }
  const stream = (_: null, to: PbfWriter): void => {
    to.writeStringField(1, labels)
    for (const each of entries) to.writeMessage(2, entry, each)
  }
  pbf.writeMessage(1, stream, null)
  return pbf.finish()
}

const snappy = createRequire(import.meta.url)('snappy-wasm') as {
  readonly compress_raw: (data: Uint8Array) => Uint8Array
}

/** One block of Snappy. */
export const snappyBlock = (data: Uint8Array): Buffer => Buffer.from(snappy.compress_raw(data))
