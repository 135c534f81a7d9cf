/** A run of bytes that grows; what others keep of it are offsets, for growing may move it. */
@unmanaged
export class Bytes {
  ptr: usize = 0
  length: usize = 0
  capacity: usize = 0
}

/** Vectors are loaded whole: so many bytes behind the last one may be read. */
const SLACK: usize = 32

export function newBytes(capacity: usize): Bytes {
  const bytes = changetype<Bytes>(heap.alloc(offsetof<Bytes>()))
  bytes.ptr = heap.alloc(capacity + SLACK)
  bytes.length = 0
  bytes.capacity = capacity
  return bytes
}

/** Makes room for `extra` more bytes. */
@inline
export function reserve(bytes: Bytes, extra: usize): void {
  if (bytes.length + extra > bytes.capacity) widen(bytes, extra)
}

function widen(bytes: Bytes, extra: usize): void {
  const capacity = max(bytes.length + extra, bytes.capacity * 2)
  bytes.ptr = heap.realloc(bytes.ptr, capacity + SLACK)
  bytes.capacity = capacity
}

/** Appends a length as ClickHouse writes it (LEB128). */
export function putVarint(bytes: Bytes, value: u32): void {
  let rest = value
  let at = bytes.ptr + bytes.length
  while (rest >= 0x80) {
    store<u8>(at++, (rest & 0x7f) | 0x80)
    rest >>= 7
  }
  store<u8>(at++, rest)
  bytes.length = at - bytes.ptr
}

/** A zeroed array of `count` values that replaces a shorter one. */
export function widened(ptr: usize, from: usize, to: usize): usize {
  const wide = heap.realloc(ptr, to + SLACK)
  memory.fill(wide + from, 0, to - from + SLACK)
  return wide
}

export function zeroed(size: usize): usize {
  const ptr = heap.alloc(size + SLACK)
  memory.fill(ptr, 0, size + SLACK)
  return ptr
}
