import { createHash } from 'node:crypto'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { restore } from '../../../src/backup/restore.js'
import { checkFiles, readManifest, writeManifest } from '../../../src/backup/manifest.js'
import {
  openControl,
  requestAuditReport,
  requestBackup,
  requestPasswordReset,
} from '../../../src/backup/control.js'
import { schemaVersions } from '../../../src/clickhouse/migrate.js'
import { loadConfig } from '../../../src/config.js'
import { createLog } from '../../../src/telemetry/log.js'

function tempDir(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'backup-test-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

const HEAD = {
  program: 'log-analytics-engine',
  version: '0.1.0',
  schema: schemaVersions().first,
  database: 'logs',
  taken_at: '2026-11-21T12:00:00.000Z',
  clickhouse: { kind: 'file', name: 'clickhouse' },
  totals: { events: 3 },
} as const

/** A backup as far as its files go. */
async function makeBackup(t: Test, head = {}): Promise<string> {
  const dir = tempDir(t)
  mkdirSync(join(dir, 'clickhouse', 'data'), { recursive: true })
  writeFileSync(join(dir, 'clickhouse', 'data', 'a.bin'), 'some rows')
  writeFileSync(join(dir, 'clickhouse', 'b.sql'), 'CREATE')
  await writeManifest(dir, { ...HEAD, ...head })
  return dir
}

const manifestOf = (dir: string): string => join(dir, 'manifest.json')

/** Changes the manifest and computes a valid checksum for it. */
function rewrite(dir: string, change: (text: string) => string): void {
  const text = change(readFileSync(manifestOf(dir), 'utf8').replace(/\n[0-9a-f]{64}\n$/, ''))
  const sum = createHash('sha256').update(text).digest('hex')
  writeFileSync(manifestOf(dir), `${text}\n${sum}\n`)
}

void test('what was written is what is read and found', async (t) => {
  const dir = await makeBackup(t)
  const manifest = await readManifest(dir)
  t.match(manifest, HEAD)
  t.same(
    manifest.files.map(({ path, bytes }) => [path, bytes]),
    [
      ['clickhouse/b.sql', 6],
      ['clickhouse/data/a.bin', 9],
    ],
  )
  await checkFiles(dir, manifest)
})

void test('only a whole backup that fits is restored, and nothing is left behind of another', async (t) => {
  const refused = async (why: RegExp, dir: string, env = {}) => {
    const target = tempDir(t)
    const parts = {
      dir,
      program: '',
      version: '',
      log: createLog('silent'),
      print: () => undefined,
    }
    const config = loadConfig({ DATA_DIR: target, ...env })
    await t.rejects(restore({ ...parts, config }), { message: why })
    t.same(readdirSync(target), [])
  }
  const changed = async (change: (dir: string) => void): Promise<string> => {
    const dir = await makeBackup(t)
    change(dir)
    return dir
  }
  const text = (dir: string): string => readFileSync(manifestOf(dir), 'utf8')
  await refused(/no complete backup/, tempDir(t))
  await refused(
    /a\.bin of the backup is damaged/,
    await changed((dir) => writeFileSync(join(dir, 'clickhouse/data/a.bin'), 'some rowz')),
  )
  await refused(
    /b\.sql of the backup is missing/,
    await changed((dir) => rmSync(join(dir, 'clickhouse/b.sql'))),
  )
  await refused(/changed or truncated/, await changed((dir) => truncateSync(manifestOf(dir), 100)))
  await refused(
    /changed or truncated/,
    await changed((dir) => writeFileSync(manifestOf(dir), text(dir).replace('logs', 'logz'))),
  )
  await refused(/not the manifest of a backup/, await changed((dir) => rewrite(dir, () => '{}')))
  await refused(
    /newer program/,
    await changed((dir) => rewrite(dir, (s) => s.replace('"format": 1', '"format": 2'))),
  )
  await refused(/unreleased version \(schema 105,/, await makeBackup(t, { schema: 105 }))
  await refused(/newer version 0\.1\.0 \(schema 9999/, await makeBackup(t, { schema: 9999 }))
  await refused(/set CLICKHOUSE_DATABASE=other/, await makeBackup(t, { database: 'other' }))
  await refused(/without CLICKHOUSE_URL/, await makeBackup(t), {
    CLICKHOUSE_URL: 'http://localhost:1',
  })
  const disk = { kind: 'disk', disk: 'backups', name: 'x' }
  await refused(/set CLICKHOUSE_URL/, await makeBackup(t, { clickhouse: disk }))
  for (const path of ['../x', '/etc/passwd', 'a/../../x'])
    await refused(
      /not in the backup/,
      await changed((dir) => rewrite(dir, (s) => s.replace('clickhouse/b.sql', path))),
    )
  const odd = { kind: 'file', name: "x') SETTINGS password='" }
  await refused(/not the manifest of a backup/, await makeBackup(t, { clickhouse: odd }))
})

void test('a directory that holds anything is not restored into', async (t) => {
  const [dir, target] = [await makeBackup(t), tempDir(t)]
  writeFileSync(join(target, 'x'), '')
  const config = loadConfig({ DATA_DIR: target })
  const parts = { dir, program: '', version: '', log: createLog('silent'), print: () => undefined }
  await t.rejects(restore({ ...parts, config }), { message: /is not empty/ })
  t.same(readdirSync(target), ['x'])
})

const MADE = {
  place: { kind: 'file', name: 'x' },
  folder: null,
  database: 'logs',
  schema: 1,
  takenAt: HEAD.taken_at,
  totals: { events: 3 },
  bytes: 1,
} as const

void test('a command reaches the service of a data directory, however long its path', async (t) => {
  for (const name of ['short', 'l'.repeat(120)]) {
    const dir = join(tempDir(t), name)
    mkdirSync(dir)
    const made = { ...MADE, database: name }
    const reset = { email: 'a@b', password: 'p', isActive: true }
    const report = { entries: 3, unchained: 0, chains: [], problems: ['entry 2 was changed'] }
    const close = await openControl(dir, {
      backup: async (_isOnS3, report) => {
        report('on it')
        return made
      },
      resetPassword: async (email) => ({ ...reset, email }),
      resetSecondFactor: async (email) => email,
      verifyAudit: async () => report,
    })
    const progress: string[] = []
    t.same(await requestBackup(dir, false, (text) => progress.push(text)), made)
    t.same(progress, ['on it'])
    t.same(await requestPasswordReset(dir, 'a@"\n'), { ...reset, email: 'a@"\n' })
    t.same(await requestAuditReport(dir), report)
    close()
    await t.rejects(requestAuditReport(dir), { message: /no service runs/ })
    await t.rejects(
      requestBackup(dir, false, () => undefined),
      { message: /no service runs/ },
    )
    t.equal(await requestPasswordReset(dir, 'a@b'), null)
    t.same(readdirSync(dir), [])
  }
})

void test('a failure of the service is reported to the command', async (t) => {
  const dir = tempDir(t)
  const fail = async (): Promise<never> => {
    throw new Error('clickhouse is down')
  }
  const close = await openControl(dir, {
    backup: fail,
    resetPassword: fail,
    resetSecondFactor: fail,
    verifyAudit: fail,
  })
  t.teardown(close)
  await t.rejects(
    requestBackup(dir, false, () => undefined),
    { message: 'clickhouse is down' },
  )
})
