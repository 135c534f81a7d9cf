import { test } from 'tap'
import { encodeCorrection } from '../../../src/priority/correction-rows.js'
import { startTestServer } from '../../support/clickhouse.js'
import { deleteByQuery } from '../../support/deletion.js'
import { compare, messagesOf, openRig } from '../../support/ingestion.js'

void test('what goes in comes out of every table', async (t) => {
  const server = await startTestServer()
  t.teardown(() => server.stop())
  const seed = Number(process.env['SEED'] ?? Date.now() % 100_000)
  t.comment(`seed ${seed}`)

  await t.test('messages, repeats and corrections', async (t) => {
    const rig = await openRig(t, server)
    const sent = [...messagesOf(seed, 200)]
    for (let at = 0; at < sent.length; at += 97) await rig.send(sent.slice(at, at + 97))
    await compare(t, rig, sent)
    const [subject] = sent
    if (subject === undefined) return t.fail('nothing was sent')
    const found = await rig.rows('SELECT id, message FROM events')
    const id = Number(found.find((row) => row['message'] === subject.message)?.['id'])
    const lateMs = Date.parse(subject.timestamp) + 59_500
    const repeat = { ...subject, timestamp: new Date(lateMs).toISOString() }
    for (const priority of ['P3', 'P1', 'P4', 'P1', 'P1'] as const) {
      const corrected = await rig.services.corrections.correct(id, priority, `because ${priority}`)
      t.match(corrected, {
        id,
        priority,
        prioritySource: 'manual',
        confidence: 1,
        modelVersion: 'manual',
      })
      t.equal(corrected.tags['correction_reason'], `because ${priority}`)
      sent.push(repeat)
      await rig.send([repeat])
      if (priority === 'P4') await compare(t, rig, sent)
    }
    await compare(t, rig, sent)
    // Two concurrent corrections during continuous ingestion.
    const busy = Promise.all(Array.from({ length: 30 }, () => rig.send([repeat])))
    await Promise.all(
      (['P4', 'P3'] as const).map((p) => rig.services.corrections.correct(id, p, '')),
    )
    await busy
    sent.push(...Array.from({ length: 30 }, () => repeat))
    return await compare(t, rig, sent)
  })

  await t.test('what a query deletes on all instances', async (t) => {
    await deleteByQuery(t, await openRig(t, server), seed + 5)
  })

  await t.test('a batch whose answer was lost counts once', async (t) => {
    const rig = await openRig(t, server)
    const { store } = rig
    await rig.send(messagesOf(seed + 1, 50))
    await rig.pipeline.settle()
    const moved = encodeCorrection(
      {
        id: 1,
        keptDays: 0,
        receivedAtMs: Date.now(),
        source: 'a',
        type: 'log',
        severity: 'INFO',
        templateId: '00000000000000ff',
        counted: [{ tsMs: Date.now(), priority: 'P1', n: 5 }],
      },
      'P2',
    )
    if (moved === null) return t.fail('nothing moves')
    const counts = (): Promise<unknown> =>
      rig.rows(`
        SELECT (SELECT sum(p2) FROM series_1s) AS s, (SELECT sum(p2) FROM series_1d) AS d,
          (SELECT sum(p2) FROM template_totals) AS t, (SELECT count() FROM events) AS e,
          (SELECT sumIf(n, priority = 'P2') FROM event_occurrences) AS o,
          (SELECT sum(p1 + p2 + p3 + p4) FROM series_1h) AS h`)
    await store.insertNative('landing', [moved.bytes], 'the-token')
    const once = await counts()
    for (let i = 0; i < 3; i++) await store.insertNative('landing', [moved.bytes], 'the-token')
    t.same(await counts(), once)
    await store.insertNative('landing', [moved.bytes], 'another-token')
    return t.notSame(await counts(), once)
  })
})
