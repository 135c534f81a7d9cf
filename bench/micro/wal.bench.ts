/**
 * The write-ahead log against lmdb with the same durability: every append is on disk before it is acknowledged.
 *
 *   node build/bench/micro/wal.bench.js [blocks] [kilobytes]
 *
 * Prints medians of five interleaved rounds: megabytes a second and CPU per megabyte.
 */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { open } from 'lmdb'

import { BlockPool } from '../../src/wal/block-pool.js'
import { Wal } from '../../src/wal/wal.js'

const blocks = Number(process.argv[2] ?? 200)
const block = randomBytes(Number(process.argv[3] ?? 512) * 1024)
const AT_ONCE = 4

type Append = (i: number) => Promise<unknown>

/** Runs `AT_ONCE` senders, each of which waits until its block is durable. */
async function drive(append: Append): Promise<{ wallMs: number; cpuMs: number }> {
  const cpu = process.cpuUsage()
  const start = performance.now()
  let next = 0
  const sender = async (): Promise<void> => {
    while (next < blocks) await append(next++)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, sender))
  const used = process.cpuUsage(cpu)
  return { wallMs: performance.now() - start, cpuMs: (used.user + used.system) / 1000 }
}

async function withLog(dir: string): Promise<{ wallMs: number; cpuMs: number }> {
  const wal = await Wal.open({
    dir,
    maxBytes: 2 ** 40,
    cacheBytes: 0,
    blockPool: new BlockPool(0),
    keepOnceKeysMs: 0,
    log: { error: () => undefined, warn: () => undefined },
  })
  const result = await drive(() => wal.append([block]).durable)
  await wal.close()
  return result
}

async function withLmdb(dir: string): Promise<{ wallMs: number; cpuMs: number }> {
  const db = open<Buffer, number>({
    path: dir,
    encoding: 'binary',
    keyEncoding: 'uint32',
    overlappingSync: false,
  })
  const result = await drive((i) => db.put(i, block))
  await db.close()
  return result
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0

const rows: Record<string, { wallMs: number; cpuMs: number }[]> = { log: [], lmdb: [] }
for (let round = 0; round < 5; round++) {
  for (const [name, run] of [
    ['log', withLog],
    ['lmdb', withLmdb],
  ] as const) {
    const dir = await mkdtemp(join(tmpdir(), 'wal-bench-'))
    rows[name]?.push(await run(join(dir, 'data')))
    await rm(dir, { recursive: true })
  }
}
const megabytes = (blocks * block.length) / 1024 / 1024
for (const [name, results] of Object.entries(rows)) {
  const perSecond = megabytes / (median(results.map((r) => r.wallMs)) / 1000)
  const cpu = median(results.map((r) => r.cpuMs)) / megabytes
  console.log(
    `${name.padEnd(5)} ${perSecond.toFixed(0).padStart(6)} MB/s  ${cpu.toFixed(2)} ms CPU per MB`,
  )
}
