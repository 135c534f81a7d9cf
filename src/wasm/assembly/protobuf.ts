/*
 * Reads the fields of protobuf messages. Fields that may be read differently by
 * `protocols/message-form.ts` are left to it: a truncated field, or a length or number of more
 * bytes than any writer needs.
 */

/** Types of values, as they are in a tag. */
export const VARINT: u32 = 0
export const FIXED64: u32 = 1
export const BYTES: u32 = 2
const FIXED32: u32 = 5

/** Lengths have at most this many bits. */
const LENGTH_BITS: u64 = 28
const MAX_VARINT: usize = 10

/** The tag of the field that was read last: eight times its number, and its type. */
export let tag: u32 = 0
/** Its value: the bytes between two addresses, and the number that a varint is. */
export let from: usize = 0
export let to: usize = 0
export let number: u64 = 0

/** Reads the field at an address. @returns false for one that must be parsed */
export function readField(at: usize, end: usize): bool {
  const c = <u32>load<u8>(at)
  let value = at + 1
  tag = c
  if (c >= 0x80) {
    const next = <u32>load<u8>(value++)
    if (next >= 0x80) return false
    tag = (c & 0x7f) | (next << 7)
  }
  from = value
  switch (tag & 7) {
    case BYTES:
      if (!readVarint(value, end) || number >> LENGTH_BITS != 0) return false
      from = to
      to += <usize>number
      break
    case VARINT:
      if (!readVarint(value, end)) return false
      break
    case FIXED64:
      to = value + 8
      break
    case FIXED32:
      to = value + 4
      break
    default:
      return false
  }
  return tag >= 8 && to <= end
}

/** Reads a varint to `number`, and where it ends to `to`. @returns false for one that is cut off or too long */
function readVarint(at: usize, end: usize): bool {
  const first = <u64>load<u8>(at)
  number = first
  to = at + 1
  if (first < 0x80) return to <= end
  number = first & 0x7f
  const stop = min(end, at + MAX_VARINT)
  for (let shift: u64 = 7; to < stop; shift += 7) {
    const next = <u64>load<u8>(to++)
    number |= (next & 0x7f) << shift
    if (next < 0x80) return true
  }
  return false
}
