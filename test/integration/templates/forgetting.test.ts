import { test } from 'tap'
import { MINUTE_MS } from '../../../src/model/time.js'
import { TemplateRegistry } from '../../../src/templates/registry.js'
import { adoptStoredTemplates } from '../../../src/templates/sharing.js'
import { createTemplateStore, type TemplateStore } from '../../../src/templates/store.js'
import type { TemplateRow } from '../../../src/wal/record.js'
import { openRig } from '../../support/ingestion.js'

const word = (n: number): string =>
  n.toString(36).replaceAll(/\d/g, (digit) => 'ghijklmnop'[Number(digit)] ?? 'q')
/** Messages of which no two are of one template. */
const distinct = (i: number): string => `${word(i * 7919)} ${word(i * 104_729)} ${word(i * 31)}`

const HOSTILE = Array.from({ length: 40 }, (_, i) => `hostile-${i}`)

void test('what a flood has left is forgotten, and all counts stay', async (t) => {
  const rig = await openRig(t, null)
  const flood = async (sources: readonly string[], from: number, to: number): Promise<void> => {
    for (const source of sources) {
      const numbers = Array.from({ length: to - from }, (_, i) => from + i)
      await rig.send(numbers.map((i) => ({ source, message: distinct(i) })))
    }
  }
  const own = async (source: string): Promise<number> => {
    await rig.pipeline.settle()
    const [row] = await rig.rows(
      `SELECT uniqExact(template_id) AS n FROM events WHERE source = '${source}'`,
    )
    return Number(row?.['n'])
  }
  const inUse = async (): Promise<number> =>
    Number(/^log_engine_templates (\d+)$/m.exec(await rig.services.metrics.render())?.[1])
  const stored = async (): Promise<number> => {
    const [row] = await rig.rows(
      'SELECT count() AS n FROM templates FINAL WHERE redirect_to != template_id',
    )
    return Number(row?.['n'])
  }
  const sums = () =>
    rig.rows(`SELECT source, sum(p1 + p2 + p3 + p4) AS n FROM template_totals
      GROUP BY source ORDER BY source`)

  await rig.send([{ source: 'hostile-0', message: 'this line comes again' }])
  await flood(HOSTILE, 0, 3_000)
  await rig.send([{ source: 'hostile-0', message: 'this line comes again' }])
  const full = await inUse()
  t.ok(full > 60_000 && full < 100_000, `${full} templates are in use`)
  await flood(['new'], 0, 200)
  t.equal(await own('new'), 200, 'a new source has templates of its own')

  const before = await sums()
  await rig.templateUpkeep.forgetRare(Date.now() - 10 * MINUTE_MS)
  t.equal(await stored(), await inUse(), 'nothing is forgotten before its time')
  await rig.templateUpkeep.forgetRare(Date.now() + MINUTE_MS)
  await rig.templateUpkeep.dropForgotten()
  const left = await inUse()
  t.ok(left < 2_000, `${left} templates are left`)
  t.equal(await stored(), left)
  const [again] = await rig.rows(
    `SELECT count() AS n FROM templates FINAL WHERE text = 'this line comes again'`,
  )
  t.equal(again?.['n'], 1, 'what was seen twice stays')
  t.same(await sums(), before, 'the counts stay')

  await flood(['new'], 0, 200)
  t.equal(await own('new'), 200, 'a source that is not crowded keeps its templates')
  const [event] = await rig.rows(
    `SELECT leftPad(lower(hex(template_id)), 16, '0') AS template FROM events
      WHERE source = 'hostile-1' AND message = '${distinct(5)}'`,
  )
  t.equal(await rig.services.templateStats.one(String(event?.['template'])), null)
  t.equal((await rig.services.templateStats.top({ limit: 50 })).length > 0, true)
  await flood(['hostile-1'], 5_000, 6_000)
  t.ok((await own('hostile-1')) >= 2_000, 'there is room again')

  await rig.services.deletions.deleteSources(HOSTILE)
  await rig.templateUpkeep.dropForgotten()
  t.equal(await inUse(), 200, 'a deletion frees the templates of the sources')
  t.equal(await stored(), 200)
})

void test('what one instance forgets the others forget, unless they use it', async (t) => {
  const rig = await openRig(t, null)
  const at = Date.now() * 1000
  const rowOf = (n: number): TemplateRow => {
    const id = n.toString(16).padStart(16, 'a')
    return { source: 's', id, redirectId: '', text: `text ${word(n)}`, born: at }
  }
  const open = () => {
    const store = createTemplateStore(rig.store)
    const templates = new TemplateRegistry()
    const adopted: string[] = []
    const catchUp = (): Promise<void> =>
      adoptStoredTemplates(store, templates, async (rows) => {
        adopted.push(...rows.map(({ id }) => id))
        templates.learn(rows.map((row, i) => ({ ...row, no: templates.size + i + 1 })))
      })
    return { store, templates, adopted, catchUp }
  }
  const [one, two] = [open(), open()]
  const rows = [rowOf(1), rowOf(2), rowOf(3)]
  await one.store.save(rows)
  await one.catchUp()
  await two.catchUp()
  t.equal(two.templates.size, 3)

  const forgetBy = async (store: TemplateStore, templates: TemplateRegistry): Promise<void> => {
    const gone = rows.slice(0, 2)
    await store.forget(gone)
    templates.forget(({ id }) => gone.some((row) => row.id === id))
  }
  await forgetBy(one.store, one.templates)
  t.same(await one.store.all(), [rowOf(3)])
  await one.catchUp()
  await two.catchUp()
  t.equal(two.templates.forgotten, 2)
  // The second instance has a message of the first template, the first instance drops both.
  const used = two.templates.takeUnsaved(Int32Array.of(two.templates.find(rowOf(1).id)?.no ?? 0))
  t.equal(used.length, 1)
  await two.store.save(used)
  one.templates.renumber(one.templates.kept(), Int32Array.of(1))
  t.equal(one.templates.size, 1)
  one.adopted.length = 0
  await one.catchUp()
  t.same(one.adopted, [rowOf(1).id], 'the first instance adopts what the second uses')
  await two.catchUp()
  t.equal(two.templates.forgotten, 1)
  for (const { store, catchUp, adopted } of [one, two]) {
    adopted.length = 0
    await catchUp()
    t.same(adopted, [], 'nothing flaps')
    t.same(
      (await store.all()).map(({ id }) => id).toSorted(),
      [rowOf(1).id, rowOf(3).id].toSorted(),
    )
  }
})
