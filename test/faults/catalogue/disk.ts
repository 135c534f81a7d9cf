import { execFileSync } from 'node:child_process'
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { decodeRecord } from '../../../src/wal/record.js'
import { FRAME_HEADER, parseSegmentName, scanSegment, type Frame } from '../../../src/wal/file.js'
import { readNative } from '../../support/native.js'
import { disks, missingDisk } from '../disk.js'
import type { Env } from '../installation.js'
import { killBoth } from '../kills.js'
import type { Ledger } from '../ledger.js'
import type { Fault, Scene, Setting } from '../trial.js'
import { isWell, untilHealth, whileTold } from '../watch.js'
import { MINUTE_MS } from '../../../src/model/time.js'

/** A body on a busy machine takes less. */
const TAKEN_MS = MINUTE_MS
const SMALL_DISK = '24m'
const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1'

/** Mounts a small disk at the path of the WAL. */
function withSmallDisk({ dataDir, owner }: Setting): Env {
  const wal = join(dataDir, 'wal')
  mkdirSync(wal, { recursive: true, mode: 0o700 })
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${SMALL_DISK},mode=0700`, 'tmpfs', wal])
  owner.teardown(() => void execFileSync('umount', ['-l', wal]))
  return {}
}

function missingMount(): string | null {
  if (process.getuid?.() !== 0) return 'mounting needs root'
  try {
    execFileSync('unshare', ['-m', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt'], { stdio: 'ignore' })
    return null
  } catch {
    return 'nothing can be mounted here'
  }
}

/** Fills the disk. @returns frees it */
function fill(path: string): () => void {
  const file = openSync(path, 'w')
  try {
    for (let bytes = 1024 * 1024; bytes >= 1; bytes = Math.floor(bytes / 4))
      for (let isFull = false; !isFull;) {
        try {
          writeSync(file, Buffer.alloc(bytes))
        } catch {
          isFull = true
        }
      }
  } finally {
    closeSync(file)
  }
  return () => rmSync(path, { force: true })
}

const segmentsOf = ({ installation }: Scene): readonly string[] => {
  const dir = join(installation.dataDir, 'wal')
  return readdirSync(dir)
    .filter((name) => name.endsWith('.log'))
    .toSorted()
    .map((name) => join(dir, name))
    .filter((path) => statSync(path).size > 0)
}

/** Ends the service with acknowledged records that wait, and calls back with their segment. */
async function killWithWaiting(scene: Scene, change: (segment: string) => void): Promise<void> {
  const { installation, clickhouse, load, random, problem } = scene
  if (clickhouse === null) throw new Error('bug: the WAL is emptied at once')
  clickhouse.mood = 'gone'
  if (!(await load.untilTaken(TAKEN_MS))) problem('nothing is taken while ClickHouse is away')
  await sleep(random() * 500)
  await installation.kill()
  const segment = segmentsOf(scene).at(-1)
  if (segment === undefined) problem('nothing waits in the WAL')
  else change(segment)
  clickhouse.mood = 'well'
  await installation.start()
}

const framesOf = (segment: string): readonly Frame[] => {
  const name = parseSegmentName(basename(segment))
  return name === null ? [] : scanSegment(name.key, readFileSync(segment)).frames
}

/** The bodies whose messages are in a record. */
function bodiesOf({ payload }: Frame, ledger: Ledger): readonly number[] {
  const { landing } = decodeRecord([payload])
  if (landing === null) return []
  const { columns } = readNative(landing)
  const times = columns.find(({ name }) => name === 'ts')?.values ?? []
  const seconds = times.map((ms) => Math.floor(Number(ms) / 1000))
  return [...new Set(seconds)].map((second) => ledger.bodyOf(second))
}

/** A record that waits for ClickHouse, preferably one whose events are repeated in later records. */
function anyWaiting(segment: string, random: () => number): Waiting | null {
  const frames = framesOf(segment)
  const done = Math.max(0, ...frames.filter(({ kind }) => kind === 'done').map(({ seq }) => seq))
  const records = frames.filter(({ kind, seq }) => kind === 'record' && seq > done)
  const repeated = new Map(records.map((record) => [record, repeatedBehind(record, records)]))
  const begin = records.filter((record) => (repeated.get(record) ?? 0) > 0)
  const batch = frames.findLast(({ kind, seq }) => kind === 'batch' && seq > done)
  const batchEnd = batch === undefined ? 0 : Number(Buffer.from(batch.payload).readBigUInt64LE())
  // When its rows may be stored and its dead letters not, the expected count is unknown.
  const isUnclear = ({ seq, payload }: Frame): boolean =>
    seq <= batchEnd && decodeRecord([payload]).dead !== null
  const among = (begin.length > 0 ? begin : records).filter((record) => !isUnclear(record))
  const frame = among[Math.floor(random() * among.length)]
  if (frame === undefined) return null
  return { frame, isUnderWay: frame.seq <= batchEnd, repeated: repeated.get(frame) ?? 0 }
}

/** The number of events that begin in a record and are repeated in later ones. */
function repeatedBehind(record: Frame, records: readonly Frame[]): number {
  const begun = new Set(idsOf(record, 1))
  const later = records.filter(({ seq }) => seq > record.seq).flatMap((other) => idsOf(other, 0))
  return new Set(later.filter((id) => begun.has(id))).size
}

function idsOf({ payload }: Frame, isNew: 0 | 1): readonly number[] {
  const { landing } = decodeRecord([payload])
  if (landing === null) return []
  const { columns } = readNative(landing)
  const valuesOf = (name: string) => columns.find((column) => column.name === name)?.values ?? []
  const flags = valuesOf('is_new').map(Number)
  return valuesOf('id')
    .map(Number)
    .filter((_, row) => flags[row] === isNew)
}

interface Waiting {
  readonly frame: Frame
  /** Whether it may be stored already. */
  readonly isUnderWay: boolean
  /** The number of its events that are repeated in later records. */
  readonly repeated: number
}

function checkReport({ installation, problem }: Scene, isExpected: boolean): void {
  const isReported = /the WAL is damaged/.test(installation.service.log())
  if (isReported !== isExpected)
    problem(isReported ? 'damage of a sound WAL is reported' : 'damage is not reported')
}

export const diskFaults: readonly Fault[] = [
  {
    id: 'disk-full',
    title: 'disk of the WAL full (a small tmpfs)',
    rounds: 2,
    clickhouse: 'server',
    missing: missingMount,
    prepare: withSmallDisk,
    async strike({ installation, load, pause }) {
      const free = fill(join(installation.dataDir, 'wal', 'filler'))
      await whileTold(
        () => installation.api,
        'spool',
        () => pause(300, 1200),
      )
      // The load is paused: the service must detect free space by itself.
      load.pause(true)
      free()
      await sleep(100)
      load.pause(false)
    },
  },
  {
    id: 'data-disk-full',
    title:
      'the disk of the WAL and of the embedded ClickHouse full, and `kill -9` of both in every other round',
    rounds: 4,
    clickhouse: 'embedded',
    missing: missingDisk,
    prepare: (setting) => {
      disks.make(setting, setting.dataDir, 768)
      return {}
    },
    async strike({ installation, random, pause }, round) {
      const free = fill(join(installation.dataDir, 'filler'))
      await untilHealth(
        () => installation.api,
        (health) => !isWell(health),
      )
      await pause(500, 3_000)
      const isKilled = round % 2 === 1
      if (isKilled) await killBoth(installation, random)
      free()
      if (isKilled) await installation.start()
    },
  },
  {
    id: 'disk-filled',
    title: 'the WAL fills its own disk while ClickHouse is away',
    rounds: 1,
    clickhouse: 'server',
    missing: missingMount,
    prepare: withSmallDisk,
    async strike({ installation, clickhouse, random, owner, dir }) {
      if (clickhouse === null) return
      clickhouse.mood = 'gone'
      // A file takes most of the disk, so that little is left to fill.
      const other = join(installation.dataDir, 'wal', 'other')
      writeFileSync(other, Buffer.alloc(19 * 1024 * 1024, Math.floor(random() * 256)))
      owner.teardown(() => rmSync(join(dir, 'other'), { force: true }))
      await whileTold(
        () => installation.api,
        'spool',
        () => sleep(300),
      )
      clickhouse.mood = 'well'
      await installation.settle()
      rmSync(other)
    },
  },
  {
    id: 'disk-readonly',
    title: 'disk of the WAL read-only, then mended and the service started again',
    rounds: 2,
    clickhouse: 'server',
    missing: missingDisk,
    prepare: (setting) => {
      disks.make(setting, join(setting.dataDir, 'wal'), 64)
      return {}
    },
    async strike({ installation, pause }) {
      const wal = join(installation.dataDir, 'wal')
      // A damaged file system becomes read-only.
      execFileSync('mount', ['-o', 'remount,abort', wal], { stdio: 'ignore' })
      await whileTold(
        () => installation.api,
        'spool',
        () => pause(500, 1500),
      )
      await installation.kill()
      disks.mend(wal)
      await installation.start()
    },
  },
  {
    id: 'torn-write',
    title: 'last write of the WAL torn, as by a power cut before its sync',
    rounds: 2,
    clickhouse: 'server',
    async strike(scene) {
      await killWithWaiting(scene, (segment) => {
        // A part of an unacknowledged frame, as a commit in progress leaves it.
        const bytes = readFileSync(segment)
        const torn = bytes.subarray(0, 21 + Math.floor(scene.random() * 300))
        writeFileSync(segment, Buffer.concat([bytes, torn.subarray(0, torn.length - 1)]))
      })
      checkReport(scene, true)
    },
  },
  {
    id: 'flipped-entry',
    title:
      'flipped bytes in acknowledged messages of the WAL: reported, and all else is kept, their repeats too',
    rounds: 2,
    clickhouse: 'server',
    async strike(scene) {
      const { ledger, random, note } = scene
      let destroyed: readonly number[] = []
      await killWithWaiting(scene, (segment) => {
        const waiting = anyWaiting(segment, random)
        if (waiting === null) return
        const { frame: record, isUnderWay, repeated } = waiting
        const bytes = readFileSync(segment)
        for (let i = 0; i < 3; i++) {
          const at = record.offset + FRAME_HEADER + Math.floor(random() * record.payload.length)
          bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << Math.floor(random() * 8)), at)
        }
        destroyed = bodiesOf(record, ledger)
        for (const no of destroyed) ledger.settle(no, isUnderWay ? 'unknown' : 'destroyed')
        note(
          `bodies ${destroyed.join(' ')} are destroyed, ${repeated} events of theirs are repeated`,
        )
        writeFileSync(segment, bytes)
      })
      if (destroyed.length === 0) scene.problem('nothing was destroyed')
      checkReport(scene, true)
      if ((await scene.installation.metric('wal_damaged_bytes')) === 0)
        scene.problem('no metric tells of the damage')
    },
  },
  {
    id: 'flipped-mark',
    title: 'a flipped byte in the newest progress mark of the WAL',
    rounds: 2,
    clickhouse: 'server',
    async strike(scene) {
      await killWithWaiting(scene, (segment) => {
        const bytes = readFileSync(segment)
        const kind = (at: number): number => bytes.readUInt8(at + 12)
        let newest = -1
        for (let at = 0; at + 21 <= bytes.length; at += 21 + bytes.readUInt32LE(at + 4))
          if (kind(at) === 1) newest = at
        if (newest < 0) return
        bytes.writeUInt8(bytes.readUInt8(newest + 30) ^ 0x40, newest + 30)
        writeFileSync(segment, bytes)
      })
    },
  },
  {
    id: 'clock',
    title: 'clock stepped back and forward by hours',
    rounds: 3,
    clickhouse: 'embedded',
    missing: () => {
      try {
        statSync(FAKETIME)
        return null
      } catch {
        return 'libfaketime is not installed'
      }
    },
    prepare: ({ dir }) => {
      writeFileSync(join(dir, 'clock'), '+0')
      return {
        LD_PRELOAD: FAKETIME,
        FAKETIME_TIMESTAMP_FILE: join(dir, 'clock'),
        FAKETIME_CACHE_DURATION: '1',
        FAKETIME_DONT_FAKE_MONOTONIC: '1',
        DONT_FAKE_MONOTONIC: '1',
      }
    },
    async strike({ dir, installation, load, random, note, pause }, round) {
      const hours = (round % 2 === 0 ? -1 : 1) * (1 + Math.floor(random() * 18))
      note(`clock ${hours} h`)
      writeFileSync(join(dir, 'clock'), `${hours < 0 ? '' : '+'}${hours * 3600}`)
      await pause(1200, 2500)
      // Messages that are acknowledged with a wrong clock are visible without a delay.
      load.pause(true)
      await installation.settle(MINUTE_MS)
      load.pause(false)
      writeFileSync(join(dir, 'clock'), '+0')
      await pause(1200, 1500)
    },
  },
]
