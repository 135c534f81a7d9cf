import { randomBytes } from 'node:crypto'
import { open, stat, statfs, truncate } from 'node:fs/promises'
import { join } from 'node:path'

const MIB = 1024 * 1024
const RESERVE_BYTES = MIB
/** ClickHouse needs room to take what the WAL holds, and often has the same disk */
const LEAST_FREE_BYTES = 256 * MIB
/** of a small disk so much is kept free instead */
const LEAST_FREE_SHARE = 1 / 16

/**
 * The disk under the WAL. A wal that has filled its disk gets smaller only by writing: which batch it
 * sends, and that it was taken. For these marks some space is set aside.
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

  /** Whether the space for marks is set aside; when it is not, everything else must wait. */
  get hasReserve(): boolean {
    return this.#hasReserve
  }

  get isNearlyFull(): boolean {
    return this.#isNearlyFull
  }

  /** Gives the space that was set aside to what is written next. Never rejects. */
  async spendReserve(): Promise<void> {
    this.#hasReserve = false
    await truncate(this.#reserve, 0).catch(() => undefined)
  }

  /** Looks how much is left, and sets space aside again when there is some. Never rejects. */
  async tend(): Promise<void> {
    const disk = await statfs(this.#dir).catch(() => null)
    if (disk !== null) {
      const least = Math.min(LEAST_FREE_BYTES, disk.blocks * disk.bsize * LEAST_FREE_SHARE)
      this.#isNearlyFull = disk.bavail * disk.bsize < least
    }
    if (this.#hasReserve) return
    this.#hasReserve = await this.#writeReserve()
    if (!this.#hasReserve) await this.spendReserve()
  }

  /** Random bytes: a disk that compresses would set nothing aside for others. */
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
