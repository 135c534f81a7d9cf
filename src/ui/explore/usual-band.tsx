import { subjectOf } from '../insights/insight-answers.js'
import { pathWith } from '../lib/api.js'
import { short } from '../lib/format.js'
import type { Histogram } from './answers.js'
import type { UsualReply } from './usual.js'

interface UsualProps {
  readonly histogram: Histogram
  readonly usual: UsualReply
}

/** The band of expected counts over the bars, and a marker for each anomaly. */
export function UsualBand({ histogram, usual }: UsualProps) {
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
