/** A text with many repeated pieces, each stored once. A worker sends this instead of the long text. */
export interface ReplyText {
  readonly pieces: readonly string[]
  /** Indexes into `pieces`. */
  readonly order: Uint32Array
}

export function replyBytes({ pieces, order }: ReplyText): Buffer {
  const encoded = pieces.map((text) => Buffer.from(text))
  let length = 0
  for (const no of order) length += encoded[no]?.length ?? 0
  const bytes = Buffer.allocUnsafe(length)
  let at = 0
  for (const no of order) at += encoded[no]?.copy(bytes, at) ?? 0
  return bytes
}
