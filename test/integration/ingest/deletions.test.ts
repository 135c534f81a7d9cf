import { test } from 'tap'
import { deleteByQuery } from '../../support/deletion.js'
import { compare, messagesOf, openRig, STEPS } from '../../support/ingestion.js'
import { eventually } from '../../support/live-service.js'
import { mutated } from '../../support/mutated.js'
import { bodyOf, SUBMISSION } from '../../support/pipeline.js'

const ROLLUPS = [...Object.keys(STEPS), 'template_stats', 'template_totals']

void test('what is deleted is gone, and what comes later is whole', async (t) => {
  const seed = Number(process.env['SEED'] ?? Date.now() % 100_000)
  t.comment(`seed ${seed}`)

  await t.test('a source goes while its messages come', async (t) => {
    const rig = await openRig(t, null)
    await rig.send(messagesOf(seed, 60))
    let acknowledged = 0
    const stop = new AbortController()
    const sender = (async () => {
      for (let i = 0; !stop.signal.aborted; i++) {
        await rig.send([
          { source: 'a', message: `after ${i}` },
          { source: 'stays', message: 'x' },
        ])
        acknowledged++
      }
    })()
    await new Promise((resolve) => setTimeout(resolve, 300))
    const before = acknowledged
    const deleted = await rig.services.deletions.deleteSources(['a', 'b'])
    const after = acknowledged
    t.ok(deleted.events > 0)
    stop.abort()
    await sender
    await rig.pipeline.settle()
    const [left] = await rig.rows(`
      SELECT countIf(source = 'b') AS b, countIf(source = 'a') AS a,
        countIf(source = 'a' AND message LIKE '% number %') AS old FROM events`)
    t.match(left, { b: 0, old: 0 })
    const a = Number(left?.['a'])
    t.ok(a >= acknowledged - after && a <= acknowledged - before, `${a} came after`)
    for (const table of ROLLUPS) {
      const sums = await rig.rows(`
        SELECT sumIf(p1 + p2 + p3 + p4, source = 'a') AS a,
          sumIf(p1 + p2 + p3 + p4, source = 'stays') AS stays FROM ${table}`)
      t.same(sums, [{ a, stays: acknowledged }], table)
    }
    const hosts = await rig.rows(`
      SELECT sumIf(host_stats.n, source = 'a') AS a, sumIf(host_stats.n, source = 'stays') AS stays
      FROM host_stats`)
    t.same(hosts, [{ a, stays: acknowledged }], 'host_stats')
    t.equal((await rig.storedSource('a'))?.['name'], a === 0 ? undefined : 'a', 'registered again')
    t.equal(rig.services.sources.get('b'), undefined)
    t.equal(await rig.storedSource('b'), null)
  })

  await t.test('a source that is made while one of its name goes stays', async (t) => {
    const rig = await openRig(t, null)
    const made = { name: 'a', type: 'push', connector: 'custom', applicationId: null } as const
    for (const remove of [
      () => rig.services.deletions.deleteSources(['a']),
      () => rig.services.deletions.clearAll(),
    ]) {
      await rig.send([{ source: 'a', message: 'x' }])
      await rig.pipeline.settle()
      const removed = remove()
      await new Promise((resolve) => setImmediate(resolve))
      await rig.services.sources.create({ ...made, connector: 'again' })
      await removed
      t.equal((await rig.storedSource('a'))?.['connector'], 'again')
      await rig.services.deletions.clearAll()
    }
  })

  await t.test('a source without repeats, or without any message, costs few tables', async (t) => {
    const rig = await openRig(t, null)
    const made = { name: 'silent', type: 'push', connector: 'custom', applicationId: null } as const
    await rig.services.sources.create(made)
    await rig.send([
      { source: 'single', message: 'comes once' },
      { source: 'repeats', message: 'comes twice' },
    ])
    await rig.send([{ source: 'repeats', message: 'comes twice' }])
    await rig.pipeline.settle()
    const madeAnew = async (): Promise<readonly string[]> => {
      const rows = await rig.rows(`
        SELECT DISTINCT table FROM system.mutations
        WHERE database = currentDatabase() AND table != 'insight_anomalies' ORDER BY table`)
      return rows.map(({ table }) => String(table))
    }
    const { deletions, sources } = rig.services
    t.same(await deletions.deleteSources(['silent']), { events: 0, alerts: 0 })
    t.same(await madeAnew(), [])
    t.match(await deletions.deleteSources(['single']), { events: 1 })
    const few = await madeAnew()
    for (const table of ['events', 'event_occurrences', 'repeat_arrivals'])
      t.notOk(few.includes(table), table)
    t.ok(few.includes('series_1s'))
    t.match(await deletions.deleteSources(['repeats']), { events: 1 })
    t.ok((await madeAnew()).includes('event_occurrences'))
    t.same(sources.list(), [])
    for (const table of ['events', ...ROLLUPS, 'host_stats'])
      t.same(await rig.rows(`SELECT count() AS n FROM ${table}`), [{ n: 0 }], table)
    for (const table of ['event_occurrences', 'repeat_arrivals'])
      await eventually(
        () => rig.rows(`SELECT count() AS n FROM ${table}`),
        ([row]) => row?.['n'] === 0,
      )
  })

  await t.test('a source of many events goes without making their table anew first', async (t) => {
    const rig = await openRig(t, null)
    await rig.send([
      { source: 'many', message: 'one' },
      { source: 'stays', message: 'one' },
    ])
    await rig.pipeline.settle()
    // More than one patch deletes, on some days, in no order of their ids.
    await rig.store.command(`INSERT INTO events (id, n, received_at, ts, source)
      SELECT 1000000 + cityHash64(number) % 1000000000000 AS id, 1, now() - INTERVAL number % 4 DAY AS received_at, received_at,
        if(number % 5 = 0, 'stays', 'many') FROM numbers(300000)`)
    const left = async () =>
      await rig.rows('SELECT source, count() AS n FROM events GROUP BY source ORDER BY source')
    const stays = [{ source: 'stays', n: 60_001 }]
    t.equal((await left()).length, 2)
    const deleted = await rig.services.deletions.deleteSources(['many'])
    t.equal(deleted.events, 240_001)
    t.same(await left(), stays)
    await rig.send([{ source: 'many', message: 'again' }])
    await rig.pipeline.settle()
    await mutated(rig.store)
    t.same(await left(), [{ source: 'many', n: 1 }, ...stays], 'what came later is whole')
    const changes = await rig.rows(`
      SELECT command FROM system.mutations WHERE database = currentDatabase() AND table = 'events'`)
    t.equal(changes.length, 1)
    t.match(changes, [{ command: /APPLY PATCHES/ }])
  })

  await t.test('what a query deletes is gone from every table', async (t) => {
    await deleteByQuery(t, await openRig(t, null), seed + 9)
  })

  await t.test('clearing leaves nothing, and what comes later counts from zero', async (t) => {
    const rig = await openRig(t, null)
    const sent = messagesOf(seed + 3, 60)
    await rig.send(sent)
    await rig.pipeline.submit({ ...SUBMISSION, bytes: bodyOf('{"source":"a"}') })
    const cleared = await rig.services.deletions.clearAll()
    const sources = new Set(sent.map(({ source }) => source)).size
    t.match(cleared, { events: 60, dead_letters: 1, sources })
    t.ok(cleared.templates > 0)
    for (const table of ['events', 'event_occurrences', ...ROLLUPS, 'templates', 'dead_letters'])
      t.same(await rig.rows(`SELECT count() AS n FROM ${table}`), [{ n: 0 }], table)
    t.equal(rig.services.sources.list().length, 0)
    await rig.send(sent)
    await compare(t, rig, sent)
    const [templates] = await rig.rows('SELECT uniqExact(template_id) AS n FROM templates FINAL')
    t.equal(templates?.['n'], cleared.templates, 'templates are stored again with their messages')
  })
})
