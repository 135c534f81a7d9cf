/** The composition of a batch and the deduplication token it is sent under. */
export interface RecordedBatch {
  readonly from: number
  readonly to: number
  readonly token: string
  /** How the batch differs from its records (`writer/batch.ts`); null for most batches. */
  readonly amendment: Uint8Array | null
}

/** Separates the token from the amendment. */
const TOKEN_END = 0

/** Format: the last sequence (u64), the token, and with an amendment a zero byte and the amendment. */
export function encodeBatch({ to, token, amendment }: RecordedBatch): readonly Uint8Array[] {
  const last = Buffer.alloc(8)
  last.writeBigUInt64LE(BigInt(to))
  const amended = amendment === null ? [] : [Buffer.of(TOKEN_END), amendment]
  return [last, Buffer.from(token), ...amended]
}

/** @param from the sequence of the frame */
export function decodeBatch(from: number, payload: Buffer): RecordedBatch {
  const end = payload.indexOf(TOKEN_END, 8)
  return {
    from,
    to: Number(payload.readBigUInt64LE()),
    token: payload.toString('latin1', 8, end < 0 ? payload.length : end),
    amendment: end < 0 ? null : payload.subarray(end + 1),
  }
}
