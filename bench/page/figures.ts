import type { Check, Metric } from '../lib/report.js'

interface Options {
  /** The goal: the greatest acceptable value. */
  readonly goal?: number
}

/** Collects figures. A goal is shown beside its figure and fails nothing, because other work shares the machine. */
export function createFigures() {
  const metrics: Metric[] = []
  const checks: Check[] = []
  return {
    metrics,
    checks,
    add: (name: string, unit: string, value: number, { goal }: Options = {}): void => {
      const text = goal === undefined ? name : `${name} (goal ${goal.toLocaleString('en-US')})`
      metrics.push({ name: text, unit, samples: [value], better: 'lower' })
    },
    check: (name: string, ok: boolean, detail: string): void => {
      checks.push({ name, ok, detail })
    },
  }
}

export type Figures = ReturnType<typeof createFigures>
