import { call, pathWith } from '../lib/api.js'
import { short } from '../lib/format.js'
import { useLoad } from '../lib/load.js'
import { subjectOf, type Anomaly } from '../insights/insight-answers.js'
import type { Histogram } from './answers.js'

export interface UsualReply {
  readonly bars: readonly {
    readonly t: string
    readonly expected: number
    readonly low: number
    readonly high: number
  }[]
  readonly anomalies: readonly Anomaly[]
}

const NONE: UsualReply = { bars: [], anomalies: [] }
/** Longer bars have no seasons. */
const LONGEST_S = 86_400

/** What the past lets expect of a histogram, and the anomalies in it. */
export function useUsual({
  line,
  start,
  end,
  step_s: step,
  answered_from: from,
}: Histogram): UsualReply {
  const params = { q: line, start_time: start, end_time: end, step_s: step }
  const isKnown = from === 'rollup' && step <= LONGEST_S
  const path = isKnown ? pathWith('/api/ai-insights/usual', params) : null
  const { value } = useLoad(path, (signal) => call<UsualReply>(path ?? '', { signal }))
  return path === null || value === null ? NONE : value
}

interface UsualProps {
  readonly histogram: Histogram
  readonly usual: UsualReply
}

/** Over the bars: the band that most of them are expected in, and a mark for each anomaly. */
export function UsualBand({ histogram, usual }: UsualProps) {
  if (usual.bars.length === 0 && usual.anomalies.length === 0) return null
  const startMs = Date.parse(histogram.start)
  const endMs = Math.max(Date.parse(histogram.end), startMs + 1000)
  const most = Math.max(...histogram.buckets.map(({ total }) => total)) * 1.05 || 1
  const x = (ms: number): number =>
    ((Math.min(endMs, Math.max(startMs, ms)) - startMs) / (endMs - startMs)) * 100
  const y = (n: number): number => (1 - Math.min(1, n / most)) * 100
  const steps = usual.bars.map(({ t, ...bar }) => {
    const ms = Date.parse(t)
    return { ...bar, left: x(ms), right: x(ms + histogram.step_s * 1000) }
  })
  return (
    <div class="usual">
      <svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
        <path
          d={steps
            .map(({ left, right, low, high }) => `M${left} ${y(high)}H${right}V${y(low)}H${left}Z`)
            .join('')}
        />
        <path
          class="expected"
          vector-effect="non-scaling-stroke"
          d={steps.map(({ left, right, expected }) => `M${left} ${y(expected)}H${right}`).join('')}
        />
      </svg>
      {usual.anomalies.map((one) => {
        const left = x(Date.parse(one.started_at))
        const right = x(one.ended_at === null ? endMs : Date.parse(one.ended_at))
        const [low, high] = one.expected_range
        const text = `${one.kind} of ${subjectOf(one)}: ${short(one.observed)} in place of ${short(low)} to ${short(high)}`
        return (
          <a
            key={one.id}
            class={one.kind}
            href={pathWith('/insights', { id: one.id })}
            title={text}
            aria-label={text}
            style={{ left: `${left}%`, width: `max(8px, ${right - left}%)` }}
          />
        )
      })}
    </div>
  )
}
