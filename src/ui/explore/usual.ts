import { call, pathWith } from '../lib/api.js'
import { useLoad } from '../lib/load.js'
import type { Anomaly } from '../insights/insight-answers.js'
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
/** Longer bars have no daily pattern. */
const LONGEST_S = 86_400

/** The expected counts of a histogram, and the anomalies in it. */
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
