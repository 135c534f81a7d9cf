import type { Result } from './trial.js'

/** The table of the README. */
export function renderTable(results: readonly Result[], seed: number): string {
  const rows = results.map(
    ({ fault, rounds, acknowledged, lost, doubled, skipped }) =>
      `| ${fault.title} | ${skipped === null ? rounds : `not tried: ${skipped}`} | ${acknowledged} | ${lost} | ${doubled} | ${seed} |`,
  )
  return [
    '| fault | times | acknowledged | lost | doubled | seed |',
    '|---|---|---|---|---|---|',
    ...rows,
    '',
  ].join('\n')
}
