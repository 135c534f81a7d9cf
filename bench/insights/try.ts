import { findAnomalies } from '../../src/insights/anomalies.js'
import { generate } from './generate.js'
import { gradeDetector } from './grade.js'
const MON = 4 * 24 // 1970-01-05
const options = { seed: Number(process.argv[2] ?? 1), series: 210, weeks: 12, quietWeeks: 5 }
const all = generate(options)
const t0 = performance.now()
const res = new Map(
  all.map((s) => [
    s,
    findAnomalies({ counts: s.counts, startHour: MON }, { from: 5 * 168, hours: s.counts.length }),
  ]),
)
console.log('ms per series', (performance.now() - t0) / all.length)
const cut = (z: number) => (s: (typeof all)[number]) =>
  (res.get(s) ?? []).filter((f) => f.score >= z)
for (const z of [5, 6, 7, 8, 10]) console.log(z, gradeDetector('ours', all, cut(z), 7 * 168))
for (const shape of new Set(all.map((s) => s.shape)))
  console.log(
    shape,
    gradeDetector(
      'ours',
      all.filter((s) => s.shape === shape),
      cut(0),
      7 * 168,
    ),
  )
for (const kind of ['burst', 'outage', 'drop', 'surge'] as const)
  console.log(
    kind,
    gradeDetector(
      'x',
      all.map((s) => ({ ...s, labels: s.labels.filter((l) => l.kind === kind), orig: s })),
      (s) => cut(0)((s as any).orig),
      7 * 168,
    ).recall,
  )
let shown = 0
for (const s of all.filter((s) => (process.argv[3] ?? 'rare') === s.shape))
  for (const f of cut(0)(s)) {
    if (s.labels.some((l) => f.from < l.to + 1 && f.to > l.from - 1) || shown++ > 12) continue
    console.log(
      f.kind,
      f.from,
      f.to,
      f.noticedAt,
      f.observed,
      f.expected.toFixed(1),
      f.score,
      'labels',
      s.labels
        .filter((l) => Math.abs(l.from - f.from) < 200)
        .map((l) => `${l.kind} ${l.from}-${l.to}`)
        .join(),
      [...s.counts.slice(f.from - 3, f.to + 3)].join(' '),
    )
  }
