import { fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { openDataDir } from '../../../src/coordination/data-dir.js'

const RIVALS = 5
const ROUNDS = 60

function tempDir(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'data-dir-test-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

const locksIn = (dir: string): readonly string[] =>
  readdirSync(dir).filter((name) => name.startsWith('lock'))

/** The id of a process that is gone. */
const deadPid = (): number => spawnSync(process.execPath, ['--version']).pid

void test('of several processes that find the lock of a dead one, exactly one takes it', async (t) => {
  const root = tempDir(t)
  const main = fileURLToPath(new URL('../../support/data-dir-rival.js', import.meta.url))
  const rivals = Array.from({ length: RIVALS }, () => fork(main))
  t.teardown(() => rivals.forEach((rival) => rival.kill('SIGKILL')))
  await Promise.all(rivals.map((rival) => once(rival, 'message')))
  const pid = deadPid()
  for (let round = 0; round < ROUNDS; round++) {
    const dir = join(root, String(round))
    mkdirSync(dir)
    // In some rounds a power failure has left an empty file.
    const isEmpty = round % 3 === 0
    const lock = join(dir, 'lock')
    writeFileSync(lock, isEmpty ? '' : `${pid} 1`)
    // In half of the rounds another process died while it took the lock over.
    const dead = isEmpty ? `broken-${statSync(lock).ino}` : `${pid}-1`
    if (round % 2 === 0) writeFileSync(`${lock}.after-${dead}`, isEmpty ? '' : `${pid} 2`)
    const replies = rivals.map((rival) => once(rival, 'message'))
    for (const rival of rivals) rival.send(dir)
    const answers = (await Promise.all(replies)).map(([answer]) => String(answer))
    const taken = answers.filter((answer) => answer === 'taken')
    if (taken.length !== 1) t.fail(`round ${round}: ${JSON.stringify(answers)}`)
    const refused = answers.filter((answer) => /is in use by process \d+/.test(answer))
    if (refused.length !== RIVALS - 1) t.fail(`round ${round}: ${JSON.stringify(answers)}`)
    const holder = rivals[answers.indexOf('taken')]
    if (!readFileSync(join(dir, 'lock'), 'utf8').startsWith(`${holder?.pid} `))
      t.fail(`round ${round}: the lock is of another`)
    const left = locksIn(dir).filter((name) => name !== 'lock')
    if (left.length > 0) t.fail(`round ${round}: ${left.join()} is left`)
  }
  t.pass(`${ROUNDS} rounds`)
})

void test('a released lock leaves no file, and the holder of a lock is named', (t) => {
  const dir = tempDir(t)
  const dataDir = openDataDir(dir)
  t.throws(() => openDataDir(dir), { message: new RegExp(`in use by process ${process.pid};`) })
  dataDir.release()
  t.same(locksIn(dir), [])
  openDataDir(dir).release()
  t.end()
})

void test('a lock whose process id is used again is of the dead', (t) => {
  const dir = tempDir(t)
  writeFileSync(join(dir, 'lock'), `${process.pid} 1 of another start of the machine`)
  openDataDir(dir).release()
  t.same(locksIn(dir), [])
  t.end()
})

void test('a directory of another version is refused, and left as it is', (t) => {
  const dir = tempDir(t)
  const file = join(dir, 'schema-version')
  const version = (): string => readFileSync(file, 'utf8')
  openDataDir(dir, { schema: { first: 5, newest: 7 } }).release()
  t.equal(version(), '7', 'one that is new is of this program')
  const upgraded = openDataDir(dir, { schema: { first: 5, newest: 9 } })
  t.equal(version(), '7', 'until the database was migrated')
  upgraded.migrated()
  t.equal(version(), '9')
  upgraded.release()
  const refused = (message: RegExp): void => {
    const before = readdirSync(dir)
    t.throws(() => openDataDir(dir, { schema: { first: 5, newest: 7 } }), { message })
    t.same(readdirSync(dir), before)
  }
  refused(/has schema version 9, and this program knows 7: start the newer program again/)
  writeFileSync(file, '4')
  refused(
    /was made by an unreleased version .*: start the version that made it, or restore a backup/,
  )
  rmSync(file)
  refused(/was made by an unreleased version/)
  t.end()
})

void test('a directory of others is refused and left as it is', (t) => {
  const refuses = (names: readonly string[]): void => {
    const dir = tempDir(t)
    chmodSync(dir, 0o755)
    for (const name of names) writeFileSync(join(dir, name), '')
    t.throws(() => openDataDir(dir), { message: /holds other files .*set DATA_DIR to one that/ })
    t.same(readdirSync(dir).toSorted(), names.toSorted())
    t.equal(statSync(dir).mode & 0o777, 0o755)
  }
  refuses(['notes.txt'])
  refuses(['.profile'])
  refuses(['lock', 'package.json'])
  const takes = (names: readonly string[]): void => {
    const dir = tempDir(t)
    for (const name of names) writeFileSync(join(dir, name), '')
    openDataDir(dir).release()
    t.equal(statSync(dir).mode & 0o777, 0o700)
  }
  takes([])
  // A new disk, and a secret that was brought along.
  takes(['lost+found', 'jwt-secret'])
  // Files that were added to a directory of this program do not matter.
  const dir = tempDir(t)
  openDataDir(dir).release()
  writeFileSync(join(dir, 'notes.txt'), '')
  openDataDir(dir).release()
  t.end()
})

void test('directories are made one in the other, and not where the system makes none', (t) => {
  const dir = tempDir(t)
  openDataDir(join(dir, 'a', 'b', 'c')).release()
  t.equal(statSync(join(dir, 'a')).mode & 0o777, 0o700)
  if (existsSync('/proc/self'))
    t.throws(() => openDataDir('/proc/none/data'), {
      message: /DATA_DIR \/proc\/none\/data can't be/,
    })
  t.end()
})

void test('disks may be mounted in a new data directory for the log and the engine', (t) => {
  const dir = tempDir(t)
  for (const name of ['wal', 'clickhouse'])
    mkdirSync(join(dir, name, 'lost+found'), { recursive: true })
  openDataDir(dir).release()
  const other = tempDir(t)
  mkdirSync(join(other, 'clickhouse'))
  writeFileSync(join(other, 'clickhouse', 'data.bin'), '')
  t.throws(() => openDataDir(other), { message: /holds other files/ })
  t.end()
})
