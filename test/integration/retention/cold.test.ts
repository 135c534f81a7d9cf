import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { backupToS3, restoreFromS3 } from '../../../src/backup/s3-backup.js'
import { loadConfig } from '../../../src/config.js'
import { DAY_MS } from '../../../src/model/time.js'
import { createLog } from '../../../src/telemetry/log.js'
import { openRig, type Rig } from '../../support/ingestion.js'
import { eventually } from '../../support/live-service.js'
import { S3_KEY, startS3 } from '../../support/s3.js'
import { ADMIN, KNOWN, tempDataDir } from '../../support/service.js'

const AWAY = /cold_storage/

/** Calls the API of a rig as its first admin. */
async function callerOf({ apiPort }: Pick<Rig, 'apiPort'>) {
  const at = `http://127.0.0.1:${apiPort}`
  const login = await fetch(`${at}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(ADMIN),
  })
  const { access_token: token } = (await login.json()) as { readonly access_token: string } // its contract
  return async (path: string, method = 'GET') => {
    const headers = { authorization: `Bearer ${token}` }
    const reply = await fetch(`${at}${path}`, { method, headers })
    return {
      status: reply.status,
      text: await reply.text(),
      cold: reply.headers.get('x-cold-before'),
    }
  }
}

/** Where the rows of a table are, by disk. */
const disksOf = (rig: Pick<Rig, 'rows'>, table: string) =>
  rig.rows(`SELECT disk_name AS disk, sum(rows) AS n FROM system.parts
    WHERE active AND database = currentDatabase() AND table = '${table}'
    AND NOT startsWith(partition_id, 'patch-') GROUP BY disk ORDER BY disk`)

const filesIn = (dir: string): readonly string[] =>
  !existsSync(dir)
    ? []
    : readdirSync(dir, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))

async function fails(t: Test, reply: Promise<{ status: number; text: string }>, what: string) {
  const { status, text } = await reply
  t.equal(status, 503, what)
  t.match(text, AWAY, what)
}

void test('old events move to S3 and are asked for, corrected, deleted, backed up and dropped there', async (t) => {
  const whole = t
  const s3 = await startS3(t)
  const dir = tempDataDir(t)
  const env = {
    ...KNOWN,
    ...s3.env,
    COLD_AFTER_DAYS: '30',
    DATA_DIR: dir,
    CLICKHOUSE_DATABASE: 'logs',
  }
  let rig = await openRig(t, null, env)
  await rig.send(
    ['a', 'a', 'b', 'c', 'd'].map((word) => ({
      source: 'shop',
      message: `order ${word} was paid`,
    })),
  )
  await rig.pipeline.settle()
  const nowMs = Date.now()
  const call = await callerOf(rig)
  const idOf = async (word: string): Promise<number> => {
    const [row] = await rig.rows(`SELECT id FROM events WHERE message = 'order ${word} was paid'`)
    return Number(row?.['id'])
  }
  const config = loadConfig(env)
  const log = createLog('silent')
  const told: string[] = []
  const command = { config, program: 'p', version: '1', log, print: (x: string) => told.push(x) }

  const hung = (text: string): void => void (text.startsWith('writing') && s3.freeze())
  await t.rejects(backupToS3({ ...command, print: hung }, 'hung'), {
    message: /did not begin the backup within ten seconds/,
  })
  s3.thaw()
  const silent = (text: string): void => void (text === 'copying' && s3.freeze())
  await t.rejects(backupToS3({ ...command, print: silent }, 'silent'), {
    message: /S3 at 127\S+ does not answer/,
  })
  s3.thaw()
  t.comment('and the writer goes on')
  await rig.services.corrections.correct(await idOf('a'), 'P1', 'before')

  await rig.retention.cold.round(nowMs + 29 * DAY_MS)
  t.same(await disksOf(rig, 'events'), [{ disk: 'default', n: 4 }])
  t.equal((await call('/api/logs')).cold, null)
  await rig.retention.cold.round(nowMs + 31 * DAY_MS)
  t.same(await disksOf(rig, 'events'), [{ disk: 'cold', n: 4 }])
  t.match(await disksOf(rig, 'event_occurrences'), [{ disk: 'cold' }])
  await rig.retention.cold.round(nowMs + 31 * DAY_MS)
  t.equal(rig.retention.told(), null)

  await t.test('questions read it and say so', async (t) => {
    const page = await call('/api/logs?search=paid')
    t.equal(page.status, 200)
    const items: readonly { message: string; priority: string; occurrence_count: number }[] =
      JSON.parse(page.text).items
    t.equal(items.length, 4)
    const first = items.find(({ message }) => message === 'order a was paid')
    t.match(first, { priority: 'P1', occurrence_count: 2 })
    t.equal(page.cold, new Date(Math.floor(nowMs / DAY_MS + 1) * DAY_MS).toISOString())
    t.type((await call('/api/logs/facets?fields=source&search=order')).cold, 'string')
    t.type((await call(`/api/logs/${await idOf('b')}`)).cold, 'string')
    t.equal((await call('/api/logs/meta/calendar')).cold, null, 'the rollups are not there')
  })

  await t.test('corrections and deletions reach it', async (t) => {
    const corrected = await rig.services.corrections.correct(await idOf('b'), 'P1', 'late')
    t.equal(corrected.priority, 'P1')
    const times = 'start_time=now-1h&end_time=now'
    const deleted = await call(`/api/logs?search=c&${times}&expected=1`, 'DELETE')
    t.same([deleted.status, deleted.text], [200, '{"deleted":1,"remaining":0}'])
    t.same(await rig.rows('SELECT count() AS n FROM events'), [{ n: 3 }])
  })

  await t.test('a backup on S3 holds it', async (t) => {
    await backupToS3(command, 'monday')
    t.match(told.at(-1), /^s3:monday: 3 events/)
    await t.rejects(backupToS3(command, 'monday'), { message: 'S3 has a backup monday already' })
    const fresh = tempDataDir(t)
    await restoreFromS3({ ...command, config: { ...config, dataDir: fresh } }, 'monday')
    t.ok(existsSync(join(fresh, 'jwt-secret')))
    t.match(told.at(-1), /3 events/)
    const missing = restoreFromS3(
      { ...command, config: { ...config, dataDir: tempDataDir(t) } },
      'x',
    )
    await t.rejects(missing, { message: `there is no backup x in S3_URL ${s3.env['S3_URL']}/` })
    t.equal(await wrongKey(command), 'S3 at HOST answered 403 (InvalidAccessKeyId)')
  })

  await t.test('keys of parts are read at the start, while S3 answers', async (t) => {
    const [row] = await rig.rows(
      "SELECT value AS v FROM system.merge_tree_settings WHERE name = 'primary_key_lazy_load'",
    )
    t.match(row, { v: '0' })
  })

  await t.test('the secret is in no file', (t) => {
    const files = filesIn(dir).filter((file) => !file.endsWith('.sock'))
    t.ok(files.length > 100)
    t.same(
      files.filter((file) => readFileSync(file).includes(`${S3_KEY}</`)),
      [],
    )
    t.end()
  })

  await t.test(
    'S3 that takes requests and answers none is told within half a minute',
    async (t) => {
      s3.freeze()
      await Promise.all([
        fails(t, call('/api/logs?search=paid'), 'a search'),
        rig.retention.cold.round(nowMs),
      ])
      t.match(rig.retention.told(), /S3 at 127\S+ does not answer \(TimeoutError\)$/)
      s3.thaw()
      await rig.retention.cold.round(nowMs)
      t.equal(rig.retention.told(), null)
    },
  )

  await t.test('while S3 is away the rest goes on', async (t) => {
    await s3.down()
    await fails(t, call('/api/logs?search=paid'), 'a search')
    t.equal((await call('/api/logs/meta/calendar')).status, 200)
    await rig.send([{ source: 'shop', message: 'a new one' }])
    await rig.pipeline.settle()
    await rig.retention.cold.round(nowMs)
    t.match(
      rig.retention.told(),
      /^cold storage does not answer or takes nothing: S3 at 127\S+ does not answer \(ECONNREFUSED\)$/,
    )
    t.match((await call('/api/monitoring/health')).text, /"degraded".*cold storage does not/)
    t.match(await rig.services.metrics.render(), /log_engine_cold_up 0/)
    const deletion = '/api/logs?source=shop&start_time=now-1h&end_time=now&expected=4'
    await fails(t, call(deletion, 'DELETE'), 'a deletion')
  })

  await t.test('a start without it ends with what is missing', async (t) => {
    await rig.close()
    await t.rejects(openRig(t, null, env), { message: /events that are on S3.*S3_URL/ })
    const without = { ...env, S3_URL: '', COLD_AFTER_DAYS: '' }
    await t.rejects(openRig(t, null, without), { message: /holds events whose rows are on S3/ })
    await s3.up()
    rig = await openRig(whole, null, env)
    await rig.retention.cold.round(nowMs)
    t.equal(rig.retention.told(), null)
    t.same(await rig.rows('SELECT count() AS n FROM events'), [{ n: 4 }])
  })

  await t.test('retention drops it', async (t) => {
    const objects = (): number => filesIn(join(s3.dir, 'logs', 'engine', 'cold')).length
    const before = objects()
    await rig.retention.sweep(nowMs + 92 * DAY_MS)
    t.same(await rig.rows('SELECT count() AS n FROM events'), [{ n: 0 }])
    // Parts that a deletion has replaced are removed minutes later.
    await eventually(
      async () => objects(),
      (left) => left < before,
    )
  })
})

void test('while S3 is away retention drops what is on the local disk', async (t) => {
  const s3 = await startS3(t)
  const env = { ...KNOWN, ...s3.env, COLD_AFTER_DAYS: '30', DATA_DIR: tempDataDir(t) }
  const rig = await openRig(t, null, { ...env, CLICKHOUSE_DATABASE: 'logs' })
  const nowMs = Date.now()
  const { sources } = rig.services
  const made = { type: 'push', connector: 'custom', applicationId: null } as const
  await sources.create({ ...made, name: 'short', retentionDays: 14 })
  await rig.send([{ source: 'long', message: 'a cold one' }])
  await rig.pipeline.settle()
  await rig.retention.cold.round(nowMs + 31 * DAY_MS)
  await rig.send([{ source: 'short', message: 'a local one' }])
  await rig.pipeline.settle()
  await sources.change('short', { retentionDays: 7 })
  await s3.down()
  // Both partitions may hold rows of several classes, and the cold one can't be read.
  await t.rejects(rig.retention.sweep(nowMs + 9 * DAY_MS), { message: /S3|[Cc]old storage/ })
  t.same(await disksOf(rig, 'events'), [{ disk: 'cold', n: 1 }])
  await s3.up()
  await rig.retention.sweep(nowMs + 10 * DAY_MS)
  t.same(await rig.rows('SELECT source FROM events'), [{ source: 'long' }])
})

void test('settings of S3 that are wrong are told at the start, and hold up no deletion', async (t) => {
  const s3 = await startS3(t)
  const env = { ...KNOWN, ...s3.env, COLD_AFTER_DAYS: '30', DATA_DIR: tempDataDir(t) }
  const rig = await openRig(t, null, { ...env, S3_SECRET_ACCESS_KEY: 'another' })
  await rig.retention.cold.round()
  const said = /takes nothing: S3 at 127\S+ answered 403 \(SignatureDoesNotMatch\)/
  t.match(rig.retention.told(), said)
  const call = await callerOf(rig)
  t.match((await call('/api/monitoring/health')).text, said)
  const deletion = '/api/logs?source=x&start_time=now-1h&end_time=now&expected=0'
  t.equal((await call(deletion, 'DELETE')).status, 200)
  await rig.close()
  const none = s3.env['S3_URL']?.replace('/logs/', '/none/') ?? ''
  const other = await openRig(t, null, { ...env, S3_URL: none, DATA_DIR: tempDataDir(t) })
  await other.retention.cold.round()
  t.match(other.retention.told(), 'S3 has no bucket of the name in S3_URL')
  await other.close()
  const right = await openRig(t, null, { ...env, DATA_DIR: tempDataDir(t) })
  await right.retention.cold.round()
  t.equal(right.retention.told(), null)
  // The round of the start may be under way.
  await eventually(
    async () => filesIn(join(s3.dir, 'logs')).length,
    (left) => left === 0,
  )
})

async function wrongKey(command: Parameters<typeof backupToS3>[0]): Promise<string> {
  const config = { ...command.config, s3AccessKeyId: 'nobody' }
  const error = await backupToS3({ ...command, config }, 'x').catch(String)
  return String(error)
    .replace('Error: ', '')
    .replace(/127[^ ]+/, 'HOST')
}
