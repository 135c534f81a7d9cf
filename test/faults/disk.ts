import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Setting } from './trial.js'

interface Disk {
  readonly mountedAt: string
  image: string
  readonly dir: string
  copies: number
}

/** The journal is not committed by time, so only synced bytes are on the disk. */
const OPTIONS = 'loop,commit=3600'

const run = (command: string, ...args: readonly string[]): unknown =>
  execFileSync(command, args, { stdio: 'pipe' })

/** File systems in image files whose power can fail. */
class Disks {
  readonly #byPath = new Map<string, Disk>()

  /** Creates a disk and mounts it until the trial ends. */
  make({ dir, owner }: Pick<Setting, 'dir' | 'owner'>, mountedAt: string, mib: number): void {
    const disk = { mountedAt, dir, copies: 0, image: join(dir, 'disk-0.img') }
    writeFileSync(disk.image, '')
    truncateSync(disk.image, mib * 1024 * 1024)
    run('mkfs.ext4', '-q', '-E', 'lazy_itable_init=0,lazy_journal_init=0', disk.image)
    mkdirSync(mountedAt, { recursive: true, mode: 0o700 })
    run('mount', '-o', OPTIONS, disk.image, mountedAt)
    owner.teardown(() => {
      run('umount', '-l', mountedAt)
      this.#byPath.delete(mountedAt)
    })
    this.#byPath.set(mountedAt, disk)
  }

  /**
   * Mounts a copy of the disk's current bytes, without the page cache. No process may use the disk.
   */
  cutPower(mountedAt: string): void {
    const disk = this.#of(mountedAt)
    const copy = join(disk.dir, `disk-${++disk.copies}.img`)
    // The copy comes first, because unmounting writes the page cache.
    run('cp', '--sparse=always', disk.image, copy)
    run('umount', '-l', mountedAt)
    rmSync(disk.image)
    disk.image = copy
    run('mount', '-o', OPTIONS, copy, mountedAt)
  }

  /** Repairs a disk and mounts it again. No process may use it. */
  mend(mountedAt: string): void {
    const { image } = this.#of(mountedAt)
    run('umount', mountedAt)
    try {
      run('e2fsck', '-p', image)
    } catch (error) {
      // Status 1 means that the damage was repaired.
      if (!(error instanceof Error && 'status' in error && error.status === 1)) throw error
    }
    run('mount', '-o', OPTIONS, image, mountedAt)
  }

  #of(mountedAt: string): Disk {
    const disk = this.#byPath.get(mountedAt)
    if (disk === undefined) throw new Error(`bug: ${mountedAt} is no disk of ours`)
    return disk
  }
}

export const disks = new Disks()

/** @returns the reason why disks can't be created here, or null */
export function missingDisk(): string | null {
  if (process.getuid?.() !== 0) return 'mounting needs root'
  const dir = mkdtempSync(join(tmpdir(), 'fault-disk-'))
  const image = join(dir, 'probe.img')
  try {
    writeFileSync(image, '')
    truncateSync(image, 4 * 1024 * 1024)
    run('mkfs.ext4', '-q', image)
    mkdirSync(join(dir, 'mounted'))
    run('mount', '-o', OPTIONS, image, join(dir, 'mounted'))
    run('umount', join(dir, 'mounted'))
    return null
  } catch {
    return 'no file system can be made and mounted here'
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}
