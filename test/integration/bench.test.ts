import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { buildDatabase } from '../../bench/flow/database.js'
import { openEngine } from '../../bench/lib/engine.js'
import { DAY_MS } from '../../src/model/time.js'

const OPTIONS = { seed: 3, events: 4000, spanMs: 3 * DAY_MS, sources: 20 }

t.test(
  'a database that is made for the bench counts alike in all its tables, is gone on with, and is made up to the present',
  async (t) => {
    const dataDir = mkdtempSync(join(tmpdir(), 'bench-database-'))
    t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
    await buildDatabase(dataDir, OPTIONS)
    const first = made(dataDir)
    t.ok(first >= 4000, `${first} events`)
    // The state after a crash between the insert and the record of its progress.
    const file = join(dataDir, 'bench.json')
    const progress: object = JSON.parse(readFileSync(file, 'utf8'))
    writeFileSync(file, JSON.stringify({ ...progress, made: 0, sending: first }))
    await buildDatabase(dataDir, OPTIONS)
    const again = made(dataDir)
    t.ok(again >= first)
    await t.rejects(buildDatabase(dataDir, { ...OPTIONS, seed: 4 }), /other options/)

    const engine = await openEngine(dataDir)
    t.teardown(() => engine.stop())
    const count = async (sql: string): Promise<unknown> =>
      (await engine.rows(`SELECT ${sql} FORMAT JSONCompactEachRow`))[0]?.[0]
    const total = 'toUInt32(sum(debug + info + warning + error + critical))'
    t.equal(
      await count(
        'toUInt32((SELECT count() FROM events) + (SELECT sum(n) FROM event_occurrences))',
      ),
      again,
    )
    for (const table of ['series_1s', 'series_1m', 'series_1h', 'series_1d', 'template_stats'])
      t.equal(await count(`${total} FROM ${table}`), again, table)
    t.equal(await count('uniqExact(id) = count() FROM events'), 1)
    t.equal(await count('uniqExact(source) FROM events'), 20)
    t.equal(
      await count('countIf(template_id NOT IN (SELECT template_id FROM templates)) FROM events'),
      0,
    )
  },
)

const made = (dataDir: string): number =>
  Number(JSON.parse(readFileSync(join(dataDir, 'bench.json'), 'utf8')).made)
