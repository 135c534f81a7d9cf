import { parseQuery } from '../../query/parser.js'
import { askHistogram, type Histogram } from '../explore/answers.js'
import { count, short } from '../lib/format.js'
import { useLoad } from '../lib/load.js'
import { zone } from '../lib/settings.js'
import { duration, shortTime, toMs } from '../lib/time.js'
import { NEW_TEMPLATE_WINDOW, type Fields } from './alert-answers.js'
import { Problem } from '../shell/problem.js'

const WINDOWS = 120
const WIDTH = 480
const HEIGHT = 110

/** The counts of a rule's query in its last windows, with its threshold. */
export const RuleChart = ({ fields: { q, kind } }: { readonly fields: Fields }) =>
  kind.type === 'dead_letters' || kind.type === 'anomaly' ? null : <Chart q={q} kind={kind} />

interface ChartProps {
  readonly q: string | undefined
  readonly kind: Exclude<Fields['kind'], { type: 'dead_letters' | 'anomaly' }>
}

function Chart({ q = '', kind }: ChartProps) {
  const window = kind.type === 'absence' ? kind.for : (kind.window ?? NEW_TEMPLATE_WINDOW)
  const windowMs = Math.max(10_000, -(toMs(`now-${window}`, 0) ?? -300_000))
  const toEnd = Math.ceil(Date.now() / windowMs) * windowMs
  const span = { fromMs: toEnd - WINDOWS * windowMs, toMs: toEnd }
  const of = kind.type === 'threshold' ? (kind.of ?? 'occurrences') : 'occurrences'
  const isAsked = parseQuery(q).fault === null
  const key = isAsked ? `rule chart ${q} ${toEnd} ${windowMs} ${of}` : null
  const loaded = useLoad(key, (signal) =>
    askHistogram({ line: q, span }, { buckets: WINDOWS, count: of }, signal),
  )
  const { value } = loaded
  if (loaded.error !== null) return <Problem of={loaded} />
  return (
    <section class="card rule-chart">
      {value === null ? (
        <h2>Counts</h2>
      ) : (
        <Counts kind={kind} histogram={value} windowMs={windowMs} />
      )}
      <p class="note">
        {shortTime(span.fromMs, zone.value)} to {shortTime(span.toMs, zone.value)}
      </p>
    </section>
  )
}

interface CountsProps {
  readonly kind: Fields['kind']
  readonly histogram: Histogram
  readonly windowMs: number
}

function Counts({ kind, histogram: { buckets, step_s: step }, windowMs }: CountsProps) {
  // The threshold is drawn only when a bar is a whole window.
  const line = kind.type === 'threshold' && step * 1000 === windowMs ? kind.fire : null
  const largest = Math.max(...buckets.map(({ total }) => total), 0)
  const most = Math.max(largest, line ?? 0, 1)
  const width = WIDTH / Math.max(buckets.length, 1)
  const y = (n: number): number => HEIGHT - (n / most) * (HEIGHT - 4)
  const isOver = (total: number): boolean => line !== null && isBeyond(kind, total)
  const over = buckets.filter(({ total }) => isOver(total)).length
  return (
    <>
      <h2>
        Counts in steps of {duration(step * 1000)}, at most {short(largest)}
      </h2>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        {buckets.map(({ t, total }, i) => (
          <rect
            key={t}
            class={isOver(total) ? 'beyond' : ''}
            x={i * width}
            y={y(total)}
            width={Math.max(1, width - 0.6)}
            height={HEIGHT - y(total)}
          />
        ))}
        {line !== null && <line x1="0" x2={WIDTH} y1={y(line)} y2={y(line)} />}
      </svg>
      {line !== null && (
        <p class="note">
          {count(over)} of {count(buckets.length)} windows are beyond the threshold
        </p>
      )}
    </>
  )
}

function isBeyond(kind: Fields['kind'], n: number): boolean {
  if (kind.type !== 'threshold') return false
  switch (kind.op) {
    case '>':
      return n > kind.fire
    case '>=':
      return n >= kind.fire
    case '<':
      return n < kind.fire
    case '<=':
      return n <= kind.fire
  }
}
