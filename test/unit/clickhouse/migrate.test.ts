import t from 'tap'
import {
  findTtls,
  type Migration,
  readMigrations,
  renderMigration,
  tablesMadeBy,
  toStatements,
} from '../../../src/clickhouse/migrate.js'

const numbers = { rollup_days: 121 }

const migration = (version: number, ...statements: readonly string[]): Migration => ({
  version,
  name: `test_${version}`,
  statements,
})

t.test('tokens become numbers and engines', async (t) => {
  const text = 'ENGINE = {{engine:ReplacingMergeTree(version, is_deleted)}} TTL a + {{rollup_days}}'
  t.equal(
    renderMigration(text, numbers),
    'ENGINE = ReplacingMergeTree(version, is_deleted) TTL a + 121',
  )
  t.equal(renderMigration('SELECT {id:UInt64}', numbers), 'SELECT {id:UInt64}')
})

t.test('a token that is not known is refused', async (t) => {
  for (const token of ['{{database}}', '{{engine:Memory}}', "{{engine:MergeTree('x')}}", '{{}}']) {
    t.throws(() => renderMigration(token, numbers), /unknown token/, token)
  }
})

t.test('only whole days are put into a table', async (t) => {
  for (const days of [0, -1, 1.5, Number.NaN, 1e9]) {
    const odd = { ...numbers, rollup_days: days }
    t.throws(() => renderMigration('{{rollup_days}}', odd), RangeError, `${days}`)
  }
})

t.test('a file is split where a line ends with a semicolon, and nowhere else', async (t) => {
  t.same(toStatements("-- one; two\nSELECT ';' AS a,\n  1;\n\n-- next\nSELECT 2; \n"), [
    "-- one; two\nSELECT ';' AS a,\n  1",
    '-- next\nSELECT 2',
  ])
  t.same(toStatements('SELECT 1'), ['SELECT 1'])
})

t.test('the migrations of the program have numbers of their own and can be rendered', async (t) => {
  const migrations = readMigrations()
  t.ok(migrations.length >= 4)
  const versions = migrations.map(({ version }) => version)
  t.same(
    versions,
    [...new Set(versions)].sort((a, b) => a - b),
  )
  for (const { name, statements } of migrations)
    for (const sql of statements) {
      t.notMatch(renderMigration(sql, numbers), /\{\{/, name)
      const code = sql.replaceAll(/^--.*\n|^\n/gm, '')
      t.match(code, /^(CREATE|ALTER|DROP) /, `${name} is split between its statements`)
      t.match(code, /IF (NOT )?EXISTS|^ALTER TABLE \w+ MODIFY SETTING/m, `${name} can be repeated`)
      t.notMatch(code, /^ALTER .*MODIFY QUERY/m, `${name}: see schema/README.md`)
    }
})

t.test('the table that batches are inserted into is made when every view is there', async (t) => {
  // A batch that passes batches_mv by loses no row: it is only not known for longer than by its token.
  const made = tablesMadeBy(readMigrations()).filter((name) => name !== 'batches_mv')
  t.ok(made.indexOf('landing') > made.findLastIndex((name) => name.endsWith('_mv')))
})

t.test('the last migration of a table decides its retention', async (t) => {
  const ttls = findTtls([
    migration(
      1,
      'CREATE TABLE IF NOT EXISTS a\n(x Date)\nTTL x + {{rollup_days}}\n',
      'CREATE TABLE IF NOT EXISTS b\n(x Date)\nTTL x + 5\n',
    ),
    migration(2, 'ALTER TABLE a\nMODIFY TTL x + 1 + {{rollup_days}}\n'),
  ])
  t.same([...ttls], [['a', 'x + 1 + {{rollup_days}}']])
})
