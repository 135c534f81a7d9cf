import { randomBytes } from 'node:crypto'
import { open, stat, statfs, truncate } from 'node:fs/promises'
import { join } from 'node:path'

const MIB = 1024 * 1024
const RESERVE_BYTES = MIB
/** ClickHouse often has the same disk, and needs free space to store what the WAL holds. */
const LEAST_FREE_BYTES = 256 * MIB
/** ClickHouse stores a large part of a table in some hundred files, each of which needs an inode. */
const LEAST_FREE_FILES = 2_000
/** On a small disk this share is kept free instead. */
const LEAST_FREE_SHARE = 1 / 16

/**
 * The disk under the WAL. When the WAL has filled its disk, it can shrink only by writing `batch`
 * and `done` frames. A reserve file keeps space free for these frames.
 */
export class WalDisk {
  readonly #dir: string
  readonly #reserve: string
  #hasReserve = false
  #isNearlyFull = false

  private constructor(dir: string) {
    this.#dir = dir
    this.#reserve = join(dir, 'reserve')
  }

  static async open(dir: string): Promise<WalDisk> {
    const disk = new WalDisk(dir)
    const found = await stat(disk.#reserve).catch(() => null)
    disk.#hasReserve = found?.size === RESERVE_BYTES && found.blocks * 512 >= RESERVE_BYTES
    await disk.tend()
    return disk
  }

  /** Without the reserve only `batch` and `done` frames may be written. */
  get hasReserve(): boolean {
    return this.#hasReserve
  }

  get isNearlyFull(): boolean {
    return this.#isNearlyFull
  }

  /** Frees the reserve for the next write. Never rejects. */
  async spendReserve(): Promise<void> {
    this.#hasReserve = false
    await truncate(this.#reserve, 0).catch(() => undefined)
  }

  /** Measures the free bytes and inodes. Writes a spent reserve again when there is room. Never rejects. */
  async tend(): Promise<void> {
    const disk = await statfs(this.#dir).catch(() => null)
    if (disk !== null) {
      const least = Math.min(LEAST_FREE_BYTES, disk.blocks * disk.bsize * LEAST_FREE_SHARE)
      // Btrfs creates inodes on demand and reports a total of 0; the limit is 0 then.
      const leastFiles = Math.min(LEAST_FREE_FILES, disk.files * LEAST_FREE_SHARE)
      this.#isNearlyFull = disk.bavail * disk.bsize < least || disk.ffree < leastFiles
    }
    if (this.#hasReserve) return
    this.#hasReserve = await this.#writeReserve()
    if (!this.#hasReserve) await this.spendReserve()
  }

  /** The bytes are random, because a file system that compresses would reserve no space for zeros. */
  async #writeReserve(): Promise<boolean> {
    try {
      const file = await open(this.#reserve, 'w', 0o600)
      try {
        const bytes = randomBytes(RESERVE_BYTES)
        for (let at = 0; at < bytes.length;) at += (await file.write(bytes, at)).bytesWritten
        await file.datasync()
      } finally {
        await file.close()
      }
      return true
    } catch {
      return false
    }
  }
}
