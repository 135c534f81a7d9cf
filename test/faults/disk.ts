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

/** no commit of the journal by the clock: what is on disk is there because somebody synced it */
const OPTIONS = 'loop,commit=3600'

const run = (command: string, ...args: readonly string[]): unknown =>
  execFileSync(command, args, { stdio: 'pipe' })

/** File systems of their own in files, whose power can be cut. */
class Disks {
  readonly #byPath = new Map<string, Disk>()

  /** Makes a disk and mounts it; it goes with the trial. */
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
   * Gives back what was on the disk itself at this moment: what only the page cache held is gone. Nobody
   * may use it any more.
   */
  cutPower(mountedAt: string): void {
    const disk = this.#of(mountedAt)
    const copy = join(disk.dir, `disk-${++disk.copies}.img`)
    // before anything else: unmounting would write what the cache holds
    run('cp', '--sparse=always', disk.image, copy)
    run('umount', '-l', mountedAt)
    rmSync(disk.image)
    disk.image = copy
    run('mount', '-o', OPTIONS, copy, mountedAt)
  }

  /** Repairs a disk and mounts it again. Nobody may use it meanwhile. */
  mend(mountedAt: string): void {
    const { image } = this.#of(mountedAt)
    run('umount', mountedAt)
    try {
      run('e2fsck', '-p', image)
    } catch (error) {
      // 1: it was damaged, and is well again
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

/** @returns why no disks can be made here, null when they can */
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
