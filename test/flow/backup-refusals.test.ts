import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { ingest, killWhen, KNOWN, runToEnd, startService, tempDataDir } from '../support/service.js'

void test('a backup goes into an empty directory, one at a time, and is for its owner alone', async (t) => {
  const [dataDir, root, target] = [tempDataDir(t), tempDataDir(t), tempDataDir(t)]
  const env = { DATA_DIR: dataDir, ...KNOWN }
  const offline = await runToEnd(env, ['backup', join(root, 'x')])
  t.equal(offline.code, 1)
  t.match(offline.stderr, /no service runs on .*: start it/)
  const service = await startService(t, env)
  const good = join(root, 'good')
  mkdirSync(good)
  await ingest(service, '{"source":"a","message":"b"}')
  const both = await Promise.all([
    runToEnd(env, ['backup', good]),
    runToEnd(env, ['backup', join(root, 'other')]),
  ])
  for (const { code, stderr } of both)
    if (code !== 0) t.match(stderr, 'another backup is being made')
  t.ok(both.some(({ code }) => code === 0))
  const [made = ''] = [good, join(root, 'other')].filter((dir) => readdirSync(dir).length > 0)
  t.match((await runToEnd(env, ['backup', made])).stderr, 'is not empty')
  t.match(await runToEnd(env, ['backup', join(dataDir, 'backups', 'monday')]), {
    code: 1,
    stderr: `is in DATA_DIR ${dataDir}, which a backup has to outlast`,
  })
  t.notOk(existsSync(join(dataDir, 'backups')))
  await service.stop()
  for (const path of ['.', ...readdirSync(made, { recursive: true, encoding: 'utf8' })])
    t.equal(statSync(join(made, path)).mode & 0o077, 0, path)

  const restored = await runToEnd({ DATA_DIR: join(target, 'whole') }, ['restore', made])
  t.match(restored.stdout, `; DATA_DIR=${join(target, 'whole')} npm start serves them`)
  rmSync(join(target, 'whole'), { recursive: true })
  const half = (): boolean => readdirSync(target).includes('restore-unfinished')
  const killed = await killWhen({ DATA_DIR: target }, ['restore', made], half)
  t.equal(killed.signal, 'SIGKILL')
  const started = await runToEnd({ DATA_DIR: target })
  t.equal(started.code, 1)
  t.match(started.stderr, 'not restored to its end: empty it and restore again')
  t.match((await runToEnd({ DATA_DIR: target }, ['restore', made])).stderr, 'is not empty')
})
