import { Decoder } from '@msgpack/msgpack'

import { contentOf, partsOf } from '../msgpack/scan.js'

/** A message of Fluentd's Forward protocol, with its parts still as bytes. */
export interface ForwardMessage {
  readonly tag: string
  /** Entries one after another, each a pair of a time and a record. */
  readonly entries: Buffer
  /** The compression of the entries as the sender declares it; '' for none. */
  readonly coding: string
  /** The id that the sender wants acknowledged; null when it wants no acknowledgement. */
  readonly chunk: string | null
}

const MAX_OPTION_BYTES = 65_536
const MAX_CHUNK_CHARS = 256
const PAIR = Buffer.of(0x92)

/**
 * Reads a message in one of the four forms: `[tag, time, record, option]`, `[tag, [[time, record], …], option]`, and
 * `[tag, bytes, option]`, compressed or not.
 *
 * @returns null for anything else
 */
export function readMessage(bytes: Buffer): ForwardMessage | null {
  const parts = partsOf(bytes, 4)
  const [first, second, third, fourth] = parts ?? []
  const tag = first === undefined ? null : contentOf(first)
  if (tag?.kind !== 'bytes' || second === undefined) return null
  const content = contentOf(second)
  const isEvent = content === null || third === undefined || !isOption(third)
  if (content !== null && (third === undefined || !isEvent)) {
    const option = readOption(third)
    return { tag: tag.bytes.toString('utf8'), entries: content.bytes, ...option }
  }
  if (third === undefined) return null
  const entries = Buffer.concat([PAIR, second, third])
  return { tag: tag.bytes.toString('utf8'), entries, ...readOption(fourth) }
}

/** An option is a map or nothing. */
const isOption = (bytes: Buffer): boolean => {
  const first = bytes[0] ?? 0
  return first === 0xc0 || (first >= 0x80 && first < 0x90) || first === 0xde || first === 0xdf
}

const NO_OPTION = { coding: '', chunk: null } as const

function readOption(bytes: Buffer | undefined): Pick<ForwardMessage, 'coding' | 'chunk'> {
  if (bytes === undefined || bytes.length > MAX_OPTION_BYTES) return NO_OPTION
  const option = decodePlain(bytes)
  if (typeof option !== 'object' || option === null) return NO_OPTION
  const { compressed, chunk } = option as Readonly<Record<string, unknown>> // a map of MessagePack
  const id = chunk instanceof Uint8Array ? Buffer.from(chunk).toString('latin1') : chunk
  const isId = typeof id === 'string' && id !== '' && id.length <= MAX_CHUNK_CHARS
  const coding = typeof compressed === 'string' && compressed !== 'text' ? compressed : ''
  return { coding, chunk: isId ? id : null }
}

/** @returns undefined for bytes that cannot be decoded */
function decodePlain(bytes: Buffer): unknown {
  try {
    return new Decoder().decode(bytes)
  } catch {
    return undefined
  }
}
