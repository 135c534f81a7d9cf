import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrationHashes, writeRelease } from './releases.js'
import {
  allEvents,
  countOf,
  enginePid,
  ingest,
  KNOWN,
  logIn,
  settledCount,
  startService,
} from './service.js'
import { signal } from './signals.js'

/** Kept for longer than any test will look at it. */
const LASTING = { RETENTION_DAYS: '3650' }
const ROWS = 40
const WAITING = 30

const owner = { teardown: () => undefined }
const { version }: { readonly version: string } = JSON.parse(readFileSync('package.json', 'utf8'))
const name = process.argv[2] ?? version
const dataDir = mkdtempSync(join(tmpdir(), 'release-'))
const service = await startService(owner, { DATA_DIR: dataDir, ...KNOWN, ...LASTING })
const lines = (source: string, rows: number): string =>
  Array.from({ length: rows }, (_, i) =>
    JSON.stringify({
      source,
      host: `host-${i % 3}`,
      severity: i % 4 === 0 ? 'error' : 'info',
      // Every second one is a repeat.
      message: `request ${i - (i % 2)} took ${i - (i % 2)} ms`,
      user: { id: i },
    }),
  ).join('\n')
for (const source of ['shop', 'billing']) await ingest(service, lines(source, ROWS))
const caller = await logIn(service)
await settledCount(() => countOf(caller, 'shop'), ROWS)
await settledCount(() => countOf(caller, 'billing'), ROWS)
const [event] = await allEvents(caller, { source: 'shop' })
if (event === undefined) throw new Error('there is no event')
await caller.call('PATCH', `/api/logs/${event.id}/priority`, { priority: 'P1', reason: 'a test' })
await caller.call('POST', '/api/alert-rules', {
  name: 'errors of the shop',
  severity: 'P2',
  q: 'source:shop severity:error',
  kind: { type: 'threshold', window: '5m', op: '>', fire: 1_000_000 },
})
// What comes now stays in the write-ahead log.
signal(enginePid(service), 'SIGKILL')
await ingest(service, lines('waiting', WAITING))
await service.kill()
writeRelease(
  {
    name,
    migrations: migrationHashes(),
    counts: { shop: ROWS, billing: ROWS, waiting: WAITING },
    waiting: 'waiting',
    correctedId: event.id,
    rule: 'errors of the shop',
  },
  dataDir,
)
rmSync(dataDir, { recursive: true, force: true })
