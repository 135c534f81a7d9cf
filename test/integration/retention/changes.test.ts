import { test } from 'tap'
import { migrate } from '../../../src/clickhouse/migrate.js'
import { createEntities } from '../../../src/coordination/entities.js'
import { createRandom } from '../../../src/demo/random.js'
import type { Severity } from '../../../src/model/event.js'
import type { RetentionClass } from '../../../src/model/retention.js'
import { DAY_MS, HOUR_MS } from '../../../src/model/time.js'
import { createPartitions } from '../../../src/retention/partitions.js'
import { createRetentionPolicy, type RetentionPolicy } from '../../../src/retention/policy.js'
import { createSweep, RetentionDoc } from '../../../src/retention/sweep.js'
import { createTestDatabase, quietLog, startTestServer } from '../../support/clickhouse.js'
import { mutated } from '../../support/mutated.js'

const SEVERITIES = ['DEBUG', 'INFO'] as const satisfies readonly Severity[]
const SOURCES = ['plain', 'own'] as const
const CLASSES = [1, 3, 7] as const satisfies readonly RetentionClass[]
const DAYS = 16

interface Row {
  readonly id: number
  readonly dayMs: number
  readonly source: string
  readonly severity: Severity
}

/** The retention of `plain` is that of the severities, that of `own` its own. */
function policyOf(days: ReadonlyMap<Severity, RetentionClass>, own: RetentionClass | null) {
  const source = { name: 'own', retentionDays: own, applicationId: null } as never
  return createRetentionPolicy({
    config: { retentionDays: 30, retentionBySeverity: days },
    sources: { list: () => [source], get: (name) => (name === 'own' ? source : undefined) },
    applications: { get: () => null },
  })
}

const classOf = (policy: RetentionPolicy, { source, severity }: Row): number =>
  policy.classesOf(source)?.[severity === 'DEBUG' ? 0 : 1] ?? 0

const stored = (policy: RetentionPolicy, row: Row): object => {
  const at = new Date(row.dayMs + HOUR_MS).toISOString()
  const { id, source, severity } = row
  return { id, source, severity, kept_days: classOf(policy, row), n: 1, ts: at, received_at: at }
}

void test('events are kept as long as the retention of each day says, however it changes', async (t) => {
  const seed = Number(process.env['SEED'] ?? Date.now() % 100_000)
  t.comment(`seed ${seed}`)
  const { pick, between, isOne } = createRandom(seed)
  const server = await startTestServer()
  t.teardown(() => server.stop())
  const { store: database } = await createTestDatabase(server)
  t.teardown(() => database.close())
  await migrate(database, { numbers: { rollup_days: 400 }, log: quietLog })
  const entities = await createEntities(database, { log: quietLog })
  const parts = {
    partitions: createPartitions(database),
    records: entities.collection('retention', RetentionDoc),
    onDropped: () => undefined,
  }
  const change = (): RetentionPolicy => {
    const days = new Map(SEVERITIES.map((one) => [one, pick(CLASSES)] as const))
    return policyOf(days, pick([null, ...CLASSES]))
  }
  let [policy, before, nextId] = [change(), change(), 1]
  let sweep = createSweep({ ...parts, policy })
  let left: readonly Row[] = []
  // The days pass a turn of the year.
  const beginMs = Date.UTC(new Date().getUTCFullYear(), 0, 1) - 8 * DAY_MS
  for (let day = 0; day < DAYS; day++) {
    const dayMs = beginMs + day * DAY_MS
    const rowsOf = (ofDayMs: number): readonly Row[] =>
      SOURCES.flatMap((source) =>
        SEVERITIES.map((severity) => ({ id: nextId++, dayMs: ofDayMs, source, severity })),
      )
    // An instance that was not restarted yet stores under the earlier retention, into the day after the change too.
    const sets = [
      { by: policy, rows: rowsOf(dayMs) },
      { by: before, rows: rowsOf(dayMs) },
      { by: before, rows: rowsOf(dayMs - between(0, 4) * DAY_MS) },
    ]
    const all = sets.flatMap(({ by, rows }) => rows.map((row) => stored(by, row)))
    await database.insertRows('events', all)
    left = [...left, ...sets.flatMap(({ rows }) => rows)]
    before = policy
    if (isOne(4)) {
      policy = change()
      sweep = createSweep({ ...parts, policy })
    }
    const nowMs = dayMs + 23 * HOUR_MS
    await sweep(nowMs)
    await mutated(database)
    left = left.filter(
      (row) => nowMs - (row.dayMs + DAY_MS) < policy.daysOf(row.source, row.severity) * DAY_MS,
    )
    const rows = await database.query(
      { name: 'test', sql: 'SELECT id FROM events ORDER BY id' },
      {},
    )
    const want = left.map(({ id }) => ({ id }))
    if (JSON.stringify(rows) !== JSON.stringify(want)) {
      t.same(rows, want, `day ${day}`)
      return
    }
  }
  t.ok(left.length > 0 && nextId > left.length)
})
