import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { refuseOtherOwner } from '../../../src/coordination/owner.js'

t.test('only the owner of a data directory writes into it', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'owner-'))
  t.teardown(() => rmSync(dataDir, { recursive: true }))
  const { uid } = statSync(dataDir)
  const at = { dataDir, path: dataDir, help: 'do otherwise' }
  t.doesNotThrow(() => refuseOtherOwner(at))
  t.doesNotThrow(() => refuseOtherOwner({ ...at, path: join(dataDir, 'none') }, uid + 1))
  t.throws(() => refuseOtherOwner(at, uid + 1), {
    message: `DATA_DIR ${dataDir} belongs to user ${uid}, and this is user ${uid + 1}: do otherwise`,
  })
})
