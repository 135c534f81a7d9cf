/**
 * Everything that takes bytes from outside, fed with changes of well-formed inputs. `FUZZ_SEED` repeats a run,
 * `FUZZ_TIMES` makes it longer, `FUZZ_KEEP=1` writes what reaches new code to test/fixtures/corpus, and
 * `FUZZ_TRACE=FILE` tells the input that hangs or ends the process.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { readCorpus } from './corpus.js'
import { functionsRun } from './coverage.js'
import { fuzz } from './fuzz.js'
import { SEED } from './settings.js'
import { TARGETS } from './targets.js'

t.comment(`FUZZ_SEED=${SEED}`)

for (const target of TARGETS) {
  t.test(`${target.name} takes whatever comes`, { timeout: 0 }, async (t) => {
    const outcome = await fuzz(target)
    const { failure, tried, inputs, functions, missing } = outcome
    t.comment(
      `${tried} tried, ${inputs} kept, ${functions} functions, ${missing} characters missed`,
    )
    if (failure === null) t.pass('no property was broken')
    else t.fail(String(failure.error), { input: failure.input, error: failure.error, seed: SEED })
  })
}

/** How readers are called here; what is not read by any target has to say why. */
const READER =
  /export (?:async )?(?:function|const) ((?:parse|decode|read|scan|verify|decompress)\w*)/g
const ELSEWHERE: Readonly<Record<string, string>> = {
  // a line that the target of the query language reads, and names that routes.test.ts tries
  readTailLine: 'query',
  readName: 'routes',
  readShown: 'routes',
  readSources: 'routes',
  // what a person types into the page, for unit/alerting/suppression
  parseMatchers: 'the page',
  // a signed token, or one that is looked up by its hash
  verifySocket: 'credentials',
  // our own bytes, behind the checksum of a frame
  decodeAmendment: 'wal-format',
  decodeBatch: 'wal-format',
  decodeRecord: 'wal-format',
  // our own file, compared in unit/assembly/backup
  readManifest: 'backup',
  // what ClickHouse and the program's own files say
  parseTransition: 'ClickHouse',
  readAttributes: 'ClickHouse',
  readBlocks: 'ClickHouse',
  readExample: 'ClickHouse',
  readRows: 'ClickHouse',
  readColumns: 'ClickHouse',
  readHours: 'ClickHouse',
  readKpiCounts: 'ClickHouse',
  readPage: 'ClickHouse',
  readRange: 'ClickHouse',
  readSchemaVersion: 'ClickHouse',
  readTotals: 'ClickHouse',
  verifyTrail: 'ClickHouse',
  readMigrations: 'the program',
  readSchema: 'the program',
  // in WebAssembly: lines.test.ts compares it with what reads the same here
  readChain: 'lines',
  readLevelWord: 'lines',
  readLines: 'lines',
  readMembers: 'lines',
  scan: 'lines',
  // and unit/ingest/body-encoder with what parses each line
  readHeaded: 'body-encoder',
  readMessages: 'body-encoder',
  // and unit/ingest/protobuf-records with what decodes each record
  readEntries: 'protobuf-records',
  readEntry: 'protobuf-records',
  readLog: 'protobuf-records',
  readLogs: 'protobuf-records',
}

t.test('whatever reads bytes from outside is tried by a target', { timeout: 0 }, async (t) => {
  const folder = fileURLToPath(new URL('../../../src/', import.meta.url))
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const readers = files
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => [...readFileSync(folder + file, 'utf8').matchAll(READER)])
    .map(([, name = '']) => name)
  t.ok(readers.length > 30, `${readers.length} readers`)
  const run = await functionsRun(/\/build\/src\//, async () => {
    for (const { name, seeds, check } of TARGETS)
      for (const seed of [...seeds, ...readCorpus(name)]) await check(Buffer.from(seed))
  })
  const isTried = (name: string): boolean => run.has(name) || Object.hasOwn(ELSEWHERE, name)
  t.same(
    readers.filter((name) => !isTried(name)),
    [],
  )
  t.same(
    Object.keys(ELSEWHERE).filter((name) => !readers.includes(name)),
    [],
    'nothing is excused that is not there',
  )
})

t.test('every target has a kept corpus', async (t) => {
  for (const { name } of TARGETS) t.ok(readCorpus(name).length > 0, name)
})
