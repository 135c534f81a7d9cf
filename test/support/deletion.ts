import type { Test } from 'tap'
import { toFilter } from '../../src/events/filter.js'
import { EVERYTHING } from '../../src/query/ast.js'
import { parseQuery } from '../../src/query/parser.js'
import { compare, messagesOf, type Rig } from './ingestion.js'

/** Deletes events by a query, and compares what every table holds with what is left of the sent messages. */
export async function deleteByQuery(t: Test, rig: Rig, seed: number): Promise<void> {
  const sent = messagesOf(seed, 120)
  const times = sent.map(({ timestamp }) => Date.parse(timestamp)).toSorted((a, b) => a - b)
  // The totals of templates keep the times of their first and last occurrence.
  const isEdge = (ms: number): boolean => ms === times.at(0) || ms === times.at(-1)
  for (let at = 0; at < sent.length; at += 97) await rig.send(sent.slice(at, at + 97))
  await rig.pipeline.settle()
  const found = await rig.rows("SELECT id FROM events WHERE source = 'a' AND message LIKE '%late%'")
  for (const { id } of found.slice(0, 3))
    await rig.services.corrections.correct(Number(id), 'P1', 'before it is deleted')
  const line = 'source:a,b -severity:critical late'
  const isMeant = (text: string, message: (typeof sent)[number]): boolean =>
    text.endsWith('late') && message.source !== 'c' && message.severity !== 'CRITICAL'
  const edges = new Set(
    sent.filter(({ timestamp }) => isEdge(Date.parse(timestamp))).map(({ message }) => message),
  )
  const edgeMs = sent
    .filter(({ message }) => edges.has(message))
    .map(({ timestamp }) => Date.parse(timestamp))
  const [first = 0, last = 0] = [times.at(0), times.at(-1)]
  const question = {
    filter: toFilter(parseQuery(line).query ?? EVERYTHING),
    fromMs: Math.max(...edgeMs.filter((ms) => ms - first < 60_000)) + 1,
    toMs: Math.min(...edgeMs.filter((ms) => last - ms < 60_000)),
  }
  const within = new Set(
    sent
      .filter((one) => isMeant(one.message, one))
      .filter(({ timestamp }) => {
        const ms = Date.parse(timestamp)
        return ms >= question.fromMs && ms < question.toMs
      })
      .map(({ source, message }) => `${source} ${message}`),
  )
  const { deletions, events } = rig.services
  const names = { redirects: [], applications: () => [] } as never
  const asked = { question, field: null, top: 1, buckets: 1, counted: 'events', names } as const
  const expected = (await events.histogram(asked)).answer.uniqueEvents
  t.equal(expected, within.size, 'the histogram says how many')
  t.ok(expected > 5, `${expected}`)
  await t.rejects(deletions.deleteEvents(question, expected + 1), {
    code: 'count_mismatch',
    details: { events: expected },
  })
  const left = sent.filter(({ source, message }) => !within.has(`${source} ${message}`))
  t.same(await deletions.deleteEvents(question, expected), { deleted: expected, remaining: 0 })
  await compare(t, rig, left)
  t.same(await deletions.deleteEvents(question, 0), { deleted: 0, remaining: 0 })
  // What repeats a deleted event begins a new one.
  const [again] = sent.filter(({ source, message }) => within.has(`${source} ${message}`))
  if (again === undefined) return
  await rig.send([again, again])
  await compare(t, rig, [...left, again, again])
  t.same(
    await rig.rows(`
      SELECT name FROM system.parts
      WHERE active AND database = currentDatabase() AND table = 'events' AND match(name, '^\\d+-\\d+(_\\d+){4}$')`),
    [],
    'no part of the events is made anew',
  )
}
