import { BufferPool } from '../lib/buffer-pool.js'
import { trimAtRest } from '../lib/rest.js'
import { BlockPool } from '../wal/block-pool.js'
import type { SharedMemory } from './packed-task.js'

/** What is in memory of the WAL: a large batch and part of the next. More gains nothing (bench/NOTES.md). */
export const WAL_CACHE_BYTES = 64 * 1024 * 1024
/**
 * Free buffers that are kept for the next bodies. One that is not kept stays in memory too, until V8 collects it: beside bodies of
 * 25 MiB the service held 1.2 GB with 32 MiB kept, and 330 MB with 128 (bench/flow/hostile.ts).
 */
const FREE_BUFFER_BYTES = 128 * 1024 * 1024
/** Free buffers that are kept for the next blocks: as many as the WAL caches, and some that fill up. */
const FREE_BLOCK_BYTES = WAL_CACHE_BYTES + 32 * 1024 * 1024
/** When nothing has come in for so long, free buffers are given back to the system. */
const REST_MS = 30_000

/** The pools of memory that bodies and blocks are kept in on their way to ClickHouse. */
export function openMemory(): SharedMemory & { readonly close: () => void } {
  const bufferPool = new BufferPool(FREE_BUFFER_BYTES)
  const blockPool = new BlockPool(FREE_BLOCK_BYTES)
  return { bufferPool, blockPool, close: trimAtRest([bufferPool, blockPool], REST_MS) }
}
