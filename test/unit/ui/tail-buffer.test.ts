import t from 'tap'

import type { Row } from '../../../src/ui/explore/rows.js'
import {
  TailBuffer,
  byTemplate,
  type TailItem,
  type TailRows,
} from '../../../src/ui/live/tail-buffer.js'

let id = 0
const row = (template: string): Row => ({ id: ++id, template_id: template }) as Row // what the buffer reads

function message(count: number, leftOut = 0, template = 'a'): TailRows {
  const rows = Array.from({ length: count }, () => row(template)).toReversed()
  const facts = { from: '', to: '', watermark: '' }
  return { type: 'tail:rows', rows, matched: count + leftOut, left_out: leftOut, ...facts }
}

const stoodFor = (items: readonly TailItem[]): number =>
  items.reduce((sum, item) => sum + (item.kind === 'gap' ? item.count : 1), 0)
const idsOf = (items: readonly TailItem[]) =>
  items.flatMap((item) => (item.kind === 'event' ? [item.row.id] : []))

t.test('events stand oldest first, and what was left out has its place', async (t) => {
  const buffer = new TailBuffer()
  buffer.push(message(3), 0)
  buffer.push(message(2, 10), 0)
  t.same(
    buffer.items.map(({ kind }) => kind),
    ['event', 'event', 'event', 'gap', 'event', 'event'],
  )
  t.same(
    idsOf(buffer.items),
    [...idsOf(buffer.items)].toSorted((a, b) => a - b),
  )
  t.equal(buffer.matched, 15)
  t.equal(buffer.leftOut, 10)
  t.equal(stoodFor(buffer.items), 15, 'shown and left out are all')
})

t.test(
  'a pause moves nothing, counts what comes, and loses nothing that it does not tell',
  async (t) => {
    const buffer = new TailBuffer()
    buffer.push(message(5), 0)
    const before = buffer.items
    buffer.pause()
    for (let i = 0; i < 100; i++) buffer.push(message(100, 3), 0)
    t.equal(buffer.items, before)
    t.equal(buffer.waiting, 10_300)
    buffer.resume()
    t.equal(buffer.waiting, 0)
    t.ok(buffer.items.length <= 4000)
    const [first] = buffer.items
    t.equal(first?.kind === 'event', false, 'the start says what is missing')
    t.equal(stoodFor(buffer.items), 10_305)
    t.equal(buffer.matched, 10_305)
  },
)

t.test('memory is bounded', async (t) => {
  const buffer = new TailBuffer()
  for (let i = 0; i < 1000; i++) buffer.push(message(100), i * 10)
  t.ok(buffer.items.length <= 4000)
  t.equal(stoodFor(buffer.items), 100_000)
  t.equal(buffer.ratePerSecond(10_000), 9_990)
  t.equal(buffer.ratePerSecond(30_000), 0)
})

t.test('events are counted by template', async (t) => {
  const buffer = new TailBuffer()
  buffer.push(message(3, 0, 'a'), 0)
  buffer.push(message(5, 2, 'b'), 0)
  t.same(
    byTemplate(buffer.items).map(({ id: template, count }) => [template, count]),
    [
      ['b', 5],
      ['a', 3],
    ],
  )
})
