import { BufferPool } from '../lib/buffer-pool.js'
import { trimWhenIdle } from '../lib/trim-when-idle.js'
import { BlockPool } from '../wal/block-pool.js'
import type { SharedMemory } from './packed-task.js'

/** The part of the WAL that is kept in memory: a large batch and part of the next. More gains nothing (bench/NOTES.md). */
export const WAL_CACHE_BYTES = 64 * 1024 * 1024
/**
 * The free buffers that are kept for the next bodies. A buffer that is not kept stays in memory
 * until V8 collects it: with bodies of 25 MiB the service used 1.2 GB when 32 MiB were kept, and
 * 330 MB with 128 MiB (bench/flow/hostile.ts).
 */
const FREE_BUFFER_BYTES = 128 * 1024 * 1024
/** The free buffers that are kept for the next blocks: as many as the WAL caches, and some that fill up. */
const FREE_BLOCK_BYTES = WAL_CACHE_BYTES + 32 * 1024 * 1024
/** After this time without input, free buffers are given back to the system. */
const REST_MS = 30_000

/** Opens the memory pools of bodies and blocks on their way to ClickHouse. */
export function openMemory(): SharedMemory & { readonly close: () => void } {
  const bufferPool = new BufferPool(FREE_BUFFER_BYTES)
  const blockPool = new BlockPool(FREE_BLOCK_BYTES)
  return { bufferPool, blockPool, close: trimWhenIdle([bufferPool, blockPool], REST_MS) }
}
