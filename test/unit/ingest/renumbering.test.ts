import { test } from 'tap'
import { matches } from '../../../src/templates/template-text.js'
import { bodyOf, createTestPipeline, SUBMISSION } from '../../support/pipeline.js'

const word = (n: number): string =>
  n.toString(36).replaceAll(/\d/g, (digit) => 'ghijklmnop'[Number(digit)] ?? 'q')
const SOURCES = ['a', 'b', 'c']
/** One of 90 kinds of messages, with variables; no two kinds are one template. */
const messageOf = (kind: number, n: number): string =>
  `${word(kind * 7919)} took ${n} ms of ${word(kind * 104_729)} at 10.0.0.${n % 250} for ${word(kind * 31)}`

void test('renumbering under load loses no message, doubles none, and gives none a wrong template', async (t) => {
  const { pipeline, templates, target, landing, send } = await createTestPipeline(t)
  const sent = new Map<string, number>()
  const stop = new AbortController()
  const feed = async (from: number): Promise<void> => {
    for (let i = from; !stop.signal.aborted; i += 3) {
      const lines = Array.from({ length: 40 }, (_, k) => {
        const kind = (i * 7 + k * 5) % 90
        return { source: SOURCES[kind % 3] ?? 'a', message: messageOf(kind, (i + k) % 50) }
      })
      for (const { source, message } of lines)
        sent.set(`${source} ${message}`, (sent.get(`${source} ${message}`) ?? 0) + 1)
      const bytes = bodyOf(lines.map((line) => JSON.stringify(line)).join('\n'))
      const result = await pipeline.submit({ ...SUBMISSION, bytes })
      if (result.accepted !== lines.length) t.fail(`accepted ${result.accepted}`)
    }
  }
  const feeds = [0, 1, 2].map(feed)
  let dropped = 0
  for (let round = 0; round < 25; round++) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    templates.forget(({ no }) => no % 3 === round % 3)
    const before = templates.size
    await Promise.all([pipeline.renumberTemplates(), pipeline.renumberTemplates()])
    // Meanwhile new ones are found.
    dropped += Math.max(0, before - templates.size)
  }
  stop.abort()
  await Promise.all(feeds)
  t.ok(dropped > 100, `${dropped} templates were dropped`)
  await send([{ source: 'a', message: messageOf(0, 1) }])
  const key = `a ${messageOf(0, 1)}`
  sent.set(key, (sent.get(key) ?? 0) + 1)

  const stored = new Map<string, number>()
  const begun = new Map<string, number>()
  const texts = new Map(
    target.templateRows.map(({ source, id, text }) => [`${source} ${id}`, text]),
  )
  let wrong = 0
  for (const row of await landing()) {
    const name = `${row['source']} ${row['message']}`
    stored.set(name, (stored.get(name) ?? 0) + Number(row['n']))
    begun.set(name, (begun.get(name) ?? 0) + Number(row['is_new']))
    const id = BigInt(row['template_id'] ?? 0)
      .toString(16)
      .padStart(16, '0')
    const text = texts.get(`${row['source']} ${id}`)
    if (text === undefined || !matches(text, String(row['message']))) wrong++
  }
  t.same(Object.fromEntries(stored), Object.fromEntries(sent), 'every message counts once')
  t.ok(
    [...begun.values()].every((events) => events === 1),
    'repeats are repeats across a renumbering',
  )
  t.equal(wrong, 0, 'no row has a template that it does not match')
})

void test('a template that a message had after it was forgotten stays, and is stored again', async (t) => {
  const { pipeline, templates, target, send } = await createTestPipeline(t)
  await send([
    { source: 'a', message: 'this one stays' },
    { source: 'a', message: 'this one goes' },
    { source: 'b', message: 'not concerned' },
  ])
  templates.forget(({ source }) => source === 'a')
  t.equal(templates.forgotten, 2)
  await send([{ source: 'a', message: 'this one stays' }])
  t.equal(templates.forgotten, 1)
  await pipeline.renumberTemplates()
  const texts = (): string[] =>
    templates
      .all()
      .map(({ text }) => text)
      .toSorted()
  t.same(texts(), ['not concerned', 'this one stays'])
  t.same(
    templates.numbered().map(({ no }) => no),
    [1, 2],
  )
  await send([{ source: 'a', message: 'this one goes' }])
  t.same(texts(), ['not concerned', 'this one goes', 'this one stays'])
  await pipeline.settle()
  const rows = target.templateRows.map(({ text }) => text).toSorted()
  t.same(rows, [
    'not concerned',
    'this one goes',
    'this one goes',
    'this one stays',
    'this one stays',
  ])
})

void test('a corrected priority and the counts of a template outlast a renumbering', async (t) => {
  const { pipeline, templates, overrides, send, landing } = await createTestPipeline(t)
  await send([
    { source: 'a', message: 'goes away' },
    { source: 'a', message: 'is corrected' },
  ])
  const corrected = templates.all().find(({ text }) => text === 'is corrected')
  overrides.set([[corrected?.id ?? '', { priority: 0, atMs: 1 }]])
  templates.forget(({ text }) => text === 'goes away')
  await pipeline.renumberTemplates()
  await send([
    { source: 'a', message: 'is corrected', severity: 'DEBUG', trace_id: 'x' },
    { source: 'a', message: 'goes away', severity: 'DEBUG', trace_id: 'x' },
  ])
  const rows = (await landing()).slice(-2)
  const byMessage = Object.fromEntries(rows.map((row) => [row['message'], row['priority_source']]))
  t.same(byMessage, { 'is corrected': 1, 'goes away': 0 })
})

void test('bodies are answered and a close ends while templates are renumbered', async (t) => {
  const { pipeline, templates, send } = await createTestPipeline(t)
  await send([{ source: 'a', message: 'one' }])
  templates.forget(() => true)
  const renumbered = pipeline.renumberTemplates()
  const sent = send([{ source: 'a', message: 'two' }])
  await Promise.all([renumbered, sent, pipeline.close()])
  t.equal((await sent).accepted, 1)
})

void test('when the miner fails, all goes on with the old numbers', async (t) => {
  let fails = false
  const { pipeline, templates, target, send } = await createTestPipeline(t, {
    pool: (pool) => ({
      ...pool,
      restore: async (rows) =>
        fails ? await Promise.reject(new Error('the thread died')) : await pool.restore(rows),
    }),
  })
  await send([{ source: 'a', message: 'one' }])
  templates.forget(() => true)
  fails = true
  await t.rejects(pipeline.renumberTemplates(), { message: 'the thread died' })
  await send([
    { source: 'a', message: 'one' },
    { source: 'a', message: 'two' },
  ])
  fails = false
  templates.forget(({ text }) => text === 'two')
  await pipeline.renumberTemplates()
  t.same(
    templates.all().map(({ text }) => text),
    ['one'],
  )
  await pipeline.settle()
  t.same(target.templateRows.map(({ text }) => text).toSorted(), ['one', 'one', 'two'])
})
