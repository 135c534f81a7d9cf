/**
 * Time of the sequencer per row, one thread: 16 sources, 170 templates, one repeat in 32, a full window.
 *
 *   node build/bench/micro/sequencer.bench.js
 *
 * It prints the 10th percentile of many blocks beside the median, because other load on the machine has little
 * influence on it.
 */
import { PriorityModel } from '../../src/priority/model.js'
import type { RowBlock } from '../../src/ingest/block.js'
import { PriorityOverrides } from '../../src/priority/overrides.js'
import { DedupWindow } from '../../src/ingest/dedup-window.js'
import { Sequencer } from '../../src/ingest/sequencer.js'
import { TemplateRegistry } from '../../src/templates/registry.js'

const [ROWS, BLOCKS, WARM_UP] = [4300, 600, 250]
const TEMPLATES = 170
const SOURCES = Array.from({ length: 16 }, (_, i) => `source-${i}`)
const START_MS = 1_700_000_000_000
const MS_PER_ROW = 3.6

let state = 12_345
const random = (below: number): number => {
  state ^= state << 13
  state ^= state >>> 17
  state ^= state << 5
  return (state >>> 0) % below
}

function block(no: number): RowBlock {
  const words = Int32Array.from({ length: ROWS * 2 }, () => random(2 ** 32) | 0)
  for (let row = 8; row < ROWS; row++)
    if (random(32) === 0) words.copyWithin(row * 2, row * 2 - 16, row * 2 - 14)
  return {
    bytes: new Uint8Array(ROWS * 26),
    rows: ROWS,
    at: {
      id: 0,
      keptDays: ROWS * 24,
      templateId: ROWS * 8,
      confidence: ROWS * 16,
      isNew: ROWS * 20,
      priority: ROWS * 21,
      prioritySource: ROWS * 22,
    },
    hashes: words,
    tsMs: Float64Array.from({ length: ROWS }, (_, row) =>
      Math.floor(START_MS + (no * ROWS + row) * MS_PER_ROW + random(1000)),
    ),
    counts: new Int32Array(ROWS).fill(1),
    severities: Uint8Array.from({ length: ROWS }, () => random(5)),
    sourceIndexes: Uint32Array.from({ length: ROWS }, () => random(SOURCES.length)),
    templateNos: Int32Array.from({ length: ROWS }, () => 1 + random(TEMPLATES)),
    sources: SOURCES,
    misses: null,
    occurrences: new Uint32Array(0),
    attributesLeftOut: 0,
  }
}

const CLASSES = Uint16Array.of(3, 14, 0, 0, 0)

const templates = new TemplateRegistry()
const model = new PriorityModel()
model.watch(templates)
for (let no = 1; no <= TEMPLATES; no++) {
  const text = `request ${'abcdefghij'[no % 10]}${no} failed: <*>`
  const id = no.toString(16).padStart(16, '0')
  templates.learn([{ no, id, source: 'source-0', text, redirectId: '', born: 1 }])
}
let next = 1
const window = new DedupWindow(300_000, 1_000_000)
const overrides = new PriorityOverrides(templates)
const sequencer = new Sequencer({
  ids: { take: () => next++ },
  window,
  templates,
  model,
  overrides,
  // Half of the sources have a retention of their own.
  retention: {
    classesOf: (source) => (/[02468]$/.test(source) ? CLASSES : null),
  },
})
const times: number[] = []
let added = 0
for (let no = 0; no < BLOCKS; no++) {
  const rows = block(no)
  const startMs = performance.now()
  added += sequencer.sequence(rows)
  if (no >= WARM_UP) times.push(((performance.now() - startMs) * 1e6) / ROWS)
}
times.sort((a, b) => a - b)
const at = (share: number): string => (times[Math.floor(times.length * share)] ?? 0).toFixed(0)
console.log(`ns a row: lowest tenth ${at(0.1)}, median ${at(0.5)}; ${added} new events`)
