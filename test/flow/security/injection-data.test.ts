/** Hostile values in what is sent to the collector, stored, shown and asked for again. */
import t from 'tap'
import { HOSTILE } from '../../support/hostile.js'
import { startInjection } from '../../support/injection.js'
import { walkData } from './injection/data.js'

const injection = await startInjection()
const { all, verdict, hasCanaries, giveaways } = injection

walkData(t, injection)

t.test('nothing of it was executed, and none of it was in the text of a statement', verdict)

t.test('the walk notices a value that gets into the text of a statement', async (t) => {
  const change = {
    id: 'concatenated',
    file: 'events/conditions.js',
    from: "sql: 'source IN {sources:Array(String)}'",
    to: "sql: `source IN ('${sources.join(\"','\")}')`",
  }
  const [value = ''] = HOSTILE
  const found = await giveaways(change, `/api/logs?source=${encodeURIComponent(value)}`)
  t.ok(
    found.some((text) => text.includes('source IN')),
    `${found.length} statements`,
  )
})

t.test('clear-all clears what is ours and nothing else', async (t) => {
  const [clear] = all.routes.filter(({ id }) => id === 'clearAll')
  if (clear === undefined) throw new Error('bug: no clear-all')
  const query = { table: 'canary', [HOSTILE[2] ?? '']: 'x' }
  t.equal((await all.send(clear, { query })).status, 422)
  t.equal((await all.send(clear, {})).status, 200)
  t.ok(await hasCanaries())
})
