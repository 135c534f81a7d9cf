import { array, assert, constantFrom, integer, nat, property, record } from 'fast-check'
import { test } from 'tap'
import type { RowBlock } from '../../../src/ingest/block.js'
import { DedupWindow } from '../../../src/ingest/dedup-window.js'
import { Sequencer } from '../../../src/ingest/sequencer.js'
import { MINUTE_MS } from '../../../src/model/time.js'
import { PriorityOverrides } from '../../../src/priority/overrides.js'
import { TemplateRegistry, type Template } from '../../../src/templates/registry.js'

interface Message {
  readonly hash: number
  readonly timeMs: number
  readonly template: number
  readonly source: string
  /** By number; 1 when it does not matter. */
  readonly severity?: number
}

/** Offsets of a block that consists of the patched columns only. */
function blockOf(messages: readonly Message[]): RowBlock {
  const rows = messages.length
  const sources = [...new Set(messages.map(({ source }) => source))]
  const at = {
    id: 0,
    isNew: rows * 8,
    priority: rows * 9,
    prioritySource: rows * 10,
    confidence: rows * 11,
    templateId: rows * 15,
    keptDays: rows * 23,
  }
  return {
    bytes: new Uint8Array(rows * 25),
    rows,
    at,
    hashes: Int32Array.from(messages.flatMap(({ hash }) => [hash, -hash])),
    tsMs: Float64Array.from(messages, ({ timeMs }) => timeMs),
    counts: Int32Array.from(messages, () => 1),
    severities: Uint8Array.from(messages, ({ severity = 1 }) => severity),
    sourceIndexes: Uint32Array.from(messages, ({ source }) => sources.indexOf(source)),
    templateNos: Int32Array.from(messages, ({ template }) => template),
    sources,
    misses: null,
    occurrences: new Uint32Array(0),
    attributesLeftOut: 0,
  }
}

function readBlock({ bytes, rows, at }: RowBlock) {
  const view = new DataView(bytes.buffer)
  return Array.from({ length: rows }, (_, row) => ({
    id: Number(view.getBigUint64(at.id + row * 8, true)),
    keptDays: view.getUint16(at.keptDays + row * 2, true),
    isNew: view.getUint8(at.isNew + row) === 1,
    priority: view.getUint8(at.priority + row),
    prioritySource: view.getUint8(at.prioritySource + row),
    confidence: view.getFloat32(at.confidence + row * 4, true),
    templateId: view
      .getBigUint64(at.templateId + row * 8, true)
      .toString(16)
      .padStart(16, '0'),
  }))
}

const idOf = (no: number): string => `${no}`.repeat(16).slice(0, 16)
const template = (no: number, into = 0): Template => ({
  no,
  id: idOf(no),
  source: 'a',
  text: `template ${no}`,
  redirectId: into === 0 ? '' : idOf(into),
  born: no,
})
const corrected = (no: number, priority: number, atMs = 1) =>
  [idOf(no), { priority, atMs }] as const

/** Retention classes of sources by severity. */
const CLASSES = new Map([['short', Uint16Array.of(1, 365, 0, 730, 3650)]])

const SCORE = { priority: 2, confidence: 0.5 }

function createRig(firstId = 1) {
  let nextId = firstId
  const templates = new TemplateRegistry()
  templates.learn([1, 2, 3, 4].map((no) => template(no)))
  const overrides = new PriorityOverrides(templates)
  const sequencer = new Sequencer({
    ids: { take: () => nextId++ },
    window: new DedupWindow(MINUTE_MS, 10_000),
    templates,
    model: { assign: () => undefined, ...SCORE },
    overrides,
    retention: { classesOf: (source) => CLASSES.get(source) ?? null },
  })
  const sequence = (...messages: Partial<Message>[]) => {
    const filled = messages.map((m) => ({ hash: 1, timeMs: 0, template: 1, source: 'a', ...m }))
    const block = blockOf(filled)
    const added = sequencer.sequence(block)
    return { rows: readBlock(block), added }
  }
  return { sequencer, overrides, templates, sequence }
}

void test('each row has the retention class of its source and severity', (t) => {
  const { sequence } = createRig()
  const { rows } = sequence(
    ...[0, 1, 2, 3, 4].map((severity) => ({ source: 'short', severity, hash: severity })),
    { source: 'other', severity: 1 },
    { source: 'short', severity: 4, hash: 4, timeMs: 1 },
  )
  t.same(
    rows.map(({ keptDays }) => keptDays),
    [1, 365, 0, 730, 3650, 0, 3650],
  )
  t.notOk(rows.at(-1)?.isNew, 'repeats too')
  t.end()
})

void test('ids are unique and ascending, and repeats have the id of their event', async () => {
  const messages = array(
    record({
      hash: nat(20),
      timeMs: integer({ min: 0, max: 200_000 }),
      template: integer({ min: 1, max: 4 }),
      source: constantFrom('a', 'b'),
    }),
    { minLength: 1, maxLength: 60 },
  )
  assert(
    property(array(messages, { maxLength: 6 }), (blocks) => {
      // Ids above 2^32 use both halves.
      const { sequence } = createRig(2 ** 32 - 5)
      const known = new Map<number, number>()
      let last = 0
      for (const block of blocks) {
        const { rows, added } = sequence(...block)
        if (added !== rows.filter(({ isNew }) => isNew).length) return false
        for (const [i, row] of rows.entries()) {
          const hash = block[i]?.hash ?? -1
          if (row.templateId !== idOf(block[i]?.template ?? 0)) return false
          if (row.priority !== SCORE.priority) return false
          if (row.isNew && (row.id <= last || row.confidence !== 0.5)) return false
          if (!row.isNew && known.get(row.id) !== hash) return false
          if (row.isNew) last = row.id
          known.set(row.id, hash)
        }
      }
      return true
    }),
  )
})

void test('a corrected priority overrides the model for later events of the template', async (t) => {
  const { overrides, sequence } = createRig()
  const before = sequence({ hash: 1 }).rows[0]
  overrides.set([corrected(1, 0)])
  const { rows } = sequence({ hash: 1, timeMs: 5 }, { hash: 2 }, { hash: 3, template: 2 })
  t.match(rows[0], { id: before?.id, isNew: false, priority: 2 }, 'a repeat counts as its event')
  t.match(rows[1], { isNew: true, priority: 0, prioritySource: 1, confidence: 1 })
  t.match(rows[2], { priority: 2, prioritySource: 0, confidence: 0.5 })
  t.equal(overrides.of(idOf(1)), 'P1')
  overrides.set([[idOf(1), null]])
  t.match(sequence({ hash: 4 }).rows, [{ priority: 2, prioritySource: 0 }])
  t.equal(overrides.of(idOf(1)), null)
})

void test('a corrected event counts its repeats under the new priority', async (t) => {
  const { sequencer, sequence } = createRig()
  const [first] = sequence({ hash: 1 }).rows
  sequencer.correct(first?.id ?? 0, 3)
  t.match(sequence({ hash: 1, timeMs: 9 }).rows, [{ id: first?.id, priority: 3 }])
  t.match(sequence({ hash: 1, timeMs: MINUTE_MS }).rows, [{ isNew: true, priority: 2 }])
})

void test('the priority of a template applies to those merged into it, over several steps', async (t) => {
  const { overrides, templates, sequence } = createRig()
  const merge = (no: number, into: number): void => {
    templates.learn([template(no, into)])
  }
  overrides.set([corrected(3, 0)])
  merge(1, 2)
  t.match(sequence({ hash: 1, template: 1 }).rows, [{ priority: 2 }])
  merge(2, 3)
  t.match(sequence({ hash: 2, template: 1 }, { hash: 3, template: 2 }).rows, [
    { priority: 0, prioritySource: 1, templateId: idOf(1) },
    { priority: 0 },
  ])
  overrides.set([corrected(3, 1)])
  t.match(sequence({ hash: 4, template: 1 }, { hash: 5, template: 4 }).rows, [
    { priority: 1 },
    { priority: 2 },
  ])
})

void test('the last correction applies when two corrected templates are merged', async (t) => {
  const { overrides, templates, sequence } = createRig()
  overrides.set([corrected(1, 3, 20), corrected(2, 0, 10)])
  templates.learn([template(1, 2)])
  for (const no of [1, 2]) {
    t.match(sequence({ hash: no, template: no }).rows, [{ priority: 3, prioritySource: 1 }])
    t.equal(overrides.of(idOf(no)), 'P4')
  }
  overrides.set([[idOf(1), null]])
  t.match(sequence({ hash: 9, template: 1 }).rows, [{ priority: 0 }])
})

void test('of two templates that are merged into each other, the older one stays', async (t) => {
  const { overrides, templates } = createRig()
  templates.learn([template(1, 2), template(2, 1), template(3, 2)])
  for (const no of [1, 2, 3]) t.equal(templates.byId(idOf(no))?.id, idOf(1))
  t.same(templates.aliasesOf(idOf(3)).toSorted(), [idOf(1), idOf(2), idOf(3)])
  overrides.set([corrected(3, 0)])
  t.equal(overrides.of(idOf(1)), 'P1')
})

void test('stored priorities apply from the first message on', async (t) => {
  const { overrides, templates, sequence } = createRig()
  templates.learn([template(1, 2)])
  overrides.set([corrected(2, 3)])
  t.match(sequence({ hash: 1, template: 1 }, { hash: 2, template: 2 }).rows, [
    { priority: 3 },
    { priority: 3 },
  ])
})

void test('no message repeats an event of a forgotten source, and other sources are unaffected', async (t) => {
  const { sequencer, sequence } = createRig()
  const before = sequence({ hash: 1 }, { hash: 2, source: 'b' }).rows
  sequencer.forget(['a', 'never seen'])
  const after = sequence({ hash: 1, timeMs: 1 }, { hash: 2, timeMs: 1, source: 'b' }).rows
  t.equal(after[0]?.isNew, true)
  t.equal(after[1]?.id, before[1]?.id)
  sequencer.forgetAll()
  t.ok(sequence({ hash: 1, timeMs: 2 }, { hash: 2, timeMs: 2 }).rows.every(({ isNew }) => isNew))
})
