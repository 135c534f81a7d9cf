/** What every released version left behind is read and goes on. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { copyProgram } from '../faults/program.js'
import { migrationHashes, readReleases, unpackRelease } from '../support/releases.js'
import {
  allEvents,
  ingest,
  KNOWN,
  launchService,
  logIn,
  settledCount,
  tempDataDir,
  type Caller,
} from '../support/service.js'

const RELEASES = readReleases()

t.test('no migration of a release was changed, and none was taken away', async (t) => {
  t.ok(RELEASES.length > 0)
  const now = migrationHashes()
  for (const { name, migrations } of RELEASES)
    for (const [file, hash] of Object.entries(migrations))
      t.equal(now[file], hash, `${file} of ${name}: add a migration instead`)
})

/** Newer than any release: it has a migration more. */
function newerProgram(t: { teardown(end: () => void): void }): string {
  const { dir, main } = copyProgram('upgrade')
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  const sql = '-- shard: view\nALTER TABLE events ADD COLUMN IF NOT EXISTS added UInt8;\n'
  writeFileSync(join(dir, 'schema', 'migrations', '9000_added.sql'), sql)
  return main
}

/** Occurrences of a source, whenever they were. */
async function occurrences(caller: Caller, source: string): Promise<number> {
  const path = `/api/logs/histogram?source=${source}&start_time=2020-01-01&buckets=1`
  return (await caller.get<{ readonly total: number }>(path)).total
}

for (const release of RELEASES)
  t.test(`data of ${release.name} is there after an upgrade, what was waiting too`, async (t) => {
    const dataDir = tempDataDir(t)
    unpackRelease(release, dataDir)
    const env = { DATA_DIR: dataDir, ...KNOWN, RETENTION_DAYS: '3650' }
    const service = await launchService(t, env, newerProgram(t)).ready()
    const caller = await logIn(service)
    for (const [source, count] of Object.entries(release.counts)) {
      t.equal(await settledCount(() => occurrences(caller, source), count), count, source)
      const events = await allEvents(caller, { source, start_time: '2020-01-01' })
      const repeats = events.reduce((sum, event) => sum + event.occurrence_count, 0)
      t.equal(repeats, count, `${source}, event by event`)
    }
    const corrected = await caller.get(`/api/logs/${release.correctedId}`)
    t.match(corrected, { priority: 'P1', model_version: 'manual' })
    const rules = await caller.get<object>('/api/alert-rules')
    t.match(JSON.stringify(rules), release.rule)
    const sent = JSON.stringify({ source: release.waiting, message: 'after the upgrade' })
    t.equal((await ingest(service, sent)).status, 202)
    const all = (release.counts[release.waiting] ?? 0) + 1
    t.equal(await settledCount(() => occurrences(caller, release.waiting), all), all)
    t.match(await service.stop(), { code: 0 })
  })
