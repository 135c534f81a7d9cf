import t from 'tap'
import { findTtls, readMigrations, renderMigration } from '../../../src/clickhouse/migrate.js'

const numbers = { retention_days: 90, rollup_days: 121 }

t.test('tokens become numbers and engines', async (t) => {
  const text =
    'ENGINE = {{engine:ReplacingMergeTree(version, is_deleted)}} TTL a + {{retention_days}}'
  t.equal(
    renderMigration(text, numbers),
    'ENGINE = ReplacingMergeTree(version, is_deleted) TTL a + 90',
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
    const odd = { ...numbers, retention_days: days }
    t.throws(() => renderMigration('{{retention_days}}', odd), RangeError, `${days}`)
  }
})

t.test('the migrations of the program have numbers of their own and can be rendered', async (t) => {
  const migrations = readMigrations()
  t.ok(migrations.length >= 4)
  const versions = migrations.map(({ version }) => version)
  t.same(
    versions,
    [...new Set(versions)].sort((a, b) => a - b),
  )
  for (const { name, text } of migrations) {
    t.notMatch(renderMigration(text, numbers), /\{\{/, name)
    t.notMatch(text, /;\s*$/, `${name} is one statement`)
    t.match(
      text,
      /IF (NOT )?EXISTS|^OPTIMIZE|^ALTER TABLE \w+ MODIFY SETTING/m,
      `${name} can be repeated`,
    )
    t.notMatch(text, /^ALTER .*MODIFY QUERY/m, `${name}: see 0063`)
  }
})

t.test('the last migration of a table decides its retention', async (t) => {
  const ttls = findTtls([
    {
      version: 1,
      name: 'a',
      text: 'CREATE TABLE IF NOT EXISTS a\n(x Date)\nTTL x + {{rollup_days}}\n',
    },
    { version: 2, name: 'b', text: 'CREATE TABLE IF NOT EXISTS b\n(x Date)\nTTL x + 5\n' },
    { version: 3, name: 'c', text: 'ALTER TABLE a\nMODIFY TTL x + {{retention_days}}\n' },
  ])
  t.same([...ttls], [['a', 'x + {{retention_days}}']])
})
