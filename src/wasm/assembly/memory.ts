/** A growing byte array. Growing may move it, so references to its contents are offsets. */
@unmanaged
export class Bytes {
  ptr: usize = 0
  length: usize = 0
  capacity: usize = 0
}

/** Vectors are loaded whole, so this many bytes after the last one may be read. */
const SLACK: usize = 32

export function newBytes(capacity: usize): Bytes {
  const bytes = changetype<Bytes>(heap.alloc(offsetof<Bytes>()))
  bytes.ptr = heap.alloc(capacity + SLACK)
  bytes.length = 0
  bytes.capacity = capacity
  return bytes
}

@inline
export function reserve(bytes: Bytes, extra: usize): void {
  if (bytes.length + extra > bytes.capacity) widen(bytes, extra)
}

function widen(bytes: Bytes, extra: usize): void {
  const capacity = max(bytes.length + extra, bytes.capacity * 2)
  bytes.ptr = heap.realloc(bytes.ptr, capacity + SLACK)
  bytes.capacity = capacity
}

/** Copies of this many bytes use the engine's `memory.copy`. */
const LONG_COPY: usize = 512

/** Copies whole vectors, at least two: up to 32 bytes after the copy are overwritten, and as many after the source read. */
@inline
export function copyOver(to: usize, from: usize, length: usize): void {
  const first = v128.load(from)
  const second = v128.load(from, 16)
  v128.store(to, first)
  v128.store(to, second, 16)
  if (length > LONG_COPY) memory.copy(to, from, length)
  else for (let i: usize = 32; i < length; i += 16) v128.store(to + i, v128.load(from + i))
}

/** Appends a string as ClickHouse writes it: its length, then its bytes. */
export function putText(bytes: Bytes, from: usize, length: usize): void {
  reserve(bytes, length + 5)
  putVarint(bytes, <u32>length)
  copyOver(bytes.ptr + bytes.length, from, length)
  bytes.length += length
}

/** Returns the bytes of a length in LEB128. */
@inline
export function varintBytes(value: u32): usize {
  return <usize>((38 - clz<u32>(value | 1)) / 7)
}

/** Appends a length in LEB128, as ClickHouse writes it. */
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

/** Grows a zeroed array from `from` to `to` bytes. @returns its new address */
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
