import { ByteBuffer } from '../lib/byte-buffer.js'
import {
  DictColumn,
  FixedColumn,
  StringColumn,
  toNativeBlock,
} from '../clickhouse/native-writer.js'
import type { DeadLetter } from '../model/dead-letter.js'
import type { Rejection } from '../model/event.js'

/** The raw text of a dead letter is truncated to this size. */
const RAW_BYTES = 64 * 1024
/** A raw text up to this size is not truncated, so it can be replayed. */
export const WHOLE_RAW_BYTES = RAW_BYTES - 4

/** Rows of dead letters in the Native format. */
export interface DeadBlock {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly rows: number
  /** The offset of the ids in `bytes`; the sequencer fills them in. */
  readonly idAt: number
}

/** The origin of a rejected message. */
type Origin = Pick<DeadLetter, 'protocol' | 'keyId' | 'line'>

export class DeadLetterEncoder {
  readonly #id = new FixedColumn('id', 'UInt64', 8)
  readonly #receivedAt = new FixedColumn('received_at', "DateTime64(3, 'UTC')", 8)
  readonly #protocol = new DictColumn('protocol')
  readonly #source = new DictColumn('source')
  readonly #keyId = new DictColumn('key_id')
  readonly #reason = new DictColumn('reason')
  readonly #detail = new DictColumn('detail')
  readonly #line = new FixedColumn('line', 'UInt32', 4)
  readonly #raw = new StringColumn('raw')
  readonly #columns = [
    this.#id,
    this.#receivedAt,
    this.#protocol,
    this.#source,
    this.#keyId,
    this.#reason,
    this.#detail,
    this.#line,
    this.#raw,
  ]
  readonly #out = new ByteBuffer()
  #receivedAtMs = 0

  begin(receivedAtMs: number): void {
    for (const column of this.#columns) column.clear()
    this.#receivedAtMs = receivedAtMs
  }

  add({ protocol, keyId, line }: Origin, rejection: Rejection): void {
    this.#id.zeros(1)
    this.#receivedAt.data.u64(this.#receivedAtMs)
    this.#protocol.push(protocol)
    this.#source.push(rejection.source.slice(0, 120))
    this.#keyId.push(keyId)
    this.#reason.push(rejection.reason)
    this.#detail.push(rejection.message)
    this.#line.data.u32(line)
    this.#raw.pushBytes(truncateUtf8(Buffer.from(rejection.raw.slice(0, RAW_BYTES)), RAW_BYTES))
  }

  finish(): DeadBlock | null {
    const rows = this.#line.rows
    if (rows === 0) return null
    const { bytes, offsets } = toNativeBlock(this.#columns, rows, this.#out)
    return { bytes, rows, idAt: offsets[0] ?? 0 }
  }
}

/** Truncates between two characters. */
function truncateUtf8(bytes: Uint8Array, limit: number): Uint8Array {
  if (bytes.length <= limit) return bytes
  let end = limit
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.subarray(0, end)
}
