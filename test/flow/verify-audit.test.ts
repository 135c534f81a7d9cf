import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { KNOWN, logIn, runToEnd, startService, tempDataDir } from '../support/service.js'

void test('a command says whether the audit trail is whole, also over restarts', async (t) => {
  const env = { DATA_DIR: tempDataDir(t), ...KNOWN }
  const verify = () => runToEnd(env, ['verify-audit'])
  for (let run = 0; run < 2; run++) {
    const service = await startService(t, env)
    await logIn(service)
    await logIn(service)
    const whole = await verify()
    t.equal(whole.code, 0)
    t.match(
      whole.stdout,
      new RegExp(`entries 1 to ${2 * run + 2}, the last with hash [0-9a-f]{64}`),
    )
    t.match(whole.stdout, /entries, all in their chains/)
    await service.stop()
  }
  t.match(await verify(), { code: 1, stderr: /no service runs/ })

  const file = join(env.DATA_DIR, 'audit-head')
  const head = JSON.parse(readFileSync(file, 'utf8'))
  // As if the chain in ClickHouse had been computed anew.
  writeFileSync(file, JSON.stringify({ ...head, hash: 'f'.repeat(64) }))
  const anew = await startService(t, env)
  t.match(await verify(), {
    code: 1,
    stdout: /PROBLEM .* entry 4, the last that this instance wrote, is missing or was changed/,
  })
  t.match(anew.log(), /audit trail has lost the last entry of this instance, or it was changed/)
  await anew.stop()

  // As if entries had been removed from ClickHouse.
  writeFileSync(file, JSON.stringify({ ...head, number: head.number + 1, hash: 'f'.repeat(64) }))
  const cut = await startService(t, env)
  await logIn(cut)
  const found = await verify()
  t.equal(found.code, 1)
  t.match(found.stdout, /PROBLEM .* entry 6 .* those between are missing/)
  t.match(found.stdout, /the trail was changed/)
  t.match(cut.log(), /audit trail has lost the last entry/)
  t.match(await runToEnd(env, ['verify-audit', 'x']), { stderr: 'usage: npm run verify-audit' })
  await cut.stop()
})
