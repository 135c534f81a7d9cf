import t from 'tap'
import { BlockTemplates } from '../../../src/ingest/block-templates.js'
import { resolveMisses, restore, type MissTask } from '../../../src/ingest/miner-thread.js'
import { MissList } from '../../../src/ingest/miss-list.js'
import { TemplateRegistry } from '../../../src/templates/registry.js'

const owners = new Map<string, string>()

/** The miner of this thread, one task after the other. */
function startMiner() {
  restore({ task: [], owners })
  const sizes: number[] = []
  let last: Promise<unknown> = Promise.resolve()
  const run = async (task: MissTask) => {
    sizes.push(task.ends.length)
    const result = resolveMisses({ task, owners })
    if (result === null) throw new Error('bug: the miner was not restored')
    return result
  }
  const resolve = (task: MissTask) => {
    const result = last.then(() => run(task))
    last = result
    return result
  }
  const none = () => Promise.reject(new Error('is not called'))
  return { sizes, pool: { resolve, adopt: none, restore: none } }
}

/** A word without digits, which are a variable. */
const word = (n: number): string =>
  Array.from(String(n), (digit) => 'abcdefghij'[Number(digit)]).join('')

/** A body of messages that no two have a template in common; each source has every second one. */
function bodyOf(count: number, name: string) {
  const misses = new MissList()
  const sources = [`${name}-a`, `${name}-b`]
  for (let row = 0; row < count; row++) {
    const text = Buffer.from(`${name} ${word(row)} is ${word(row * 7)} of ${word(row * 31)}`)
    misses.add(row, count, text, { sourceIndex: row % 2, readyMade: false, row })
  }
  const found = misses.finish()
  if (found === null) throw new Error('bug: no misses')
  return { block: { sources, templateNos: new Int32Array(count) }, misses: found }
}

t.test('a few new templates do not wait for all of a body that has many', async (t) => {
  const { sizes, pool } = startMiner()
  const templates = new TemplateRegistry()
  const learned = new Map<string, number>()
  const resolver = new BlockTemplates({
    pool,
    templates,
    signatures: { put: (lo, hi, no) => void learned.set(`${lo} ${hi}`, no) },
  })
  const [large, small] = [bodyOf(2_001, 'large'), bodyOf(3, 'small')]
  const ends: string[] = []
  await Promise.all([
    resolver.resolve(large.block, large.misses).then(() => ends.push('large')),
    resolver.resolve(small.block, small.misses).then(() => ends.push('small')),
  ])
  t.same(ends, ['small', 'large'])
  t.equal(sizes.indexOf(3), 1, 'it is the second task of the miner')
  const byNo = new Map(templates.numbered().map(({ no, source }) => [no, source]))
  for (const { block } of [large, small]) {
    const { sources, templateNos } = block
    const count = templateNos.length
    const expected = Array.from(templateNos, (_no, row) => sources[row % 2])
    t.same(
      Array.from(templateNos, (no) => byNo.get(no)),
      expected,
    )
    t.same(
      Array.from(templateNos, (_no, row) => learned.get(`${row} ${count}`)),
      Array.from(templateNos),
    )
  }
})
