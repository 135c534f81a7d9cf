import type { Check, Metric } from '../lib/report.js'

interface Options {
  /** What it is to be at most. */
  readonly goal?: number
}

/** Collects what is measured. A goal stands beside its figure; it fails nothing, because other work shares the machine. */
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
