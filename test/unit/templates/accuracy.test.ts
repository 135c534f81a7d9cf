import t, { type Test } from 'tap'
import { gradeFolder, gradeServices, gradeTable, type Grade } from '../../../bench/mining.js'

/** Fails when the mean of a measure is below its bound. */
function holds(t: Test, grades: readonly Grade[], bounds: Readonly<Record<Measure, number>>) {
  t.comment(gradeTable(grades))
  for (const measure of ['GA', 'FGA', 'PA', 'FTA'] as const) {
    const mean = grades.reduce((sum, grade) => sum + grade[measure], 0) / grades.length
    t.ok(mean >= bounds[measure], `${measure} is ${mean.toFixed(3)}, not below ${bounds[measure]}`)
  }
}

type Measure = 'GA' | 'FGA' | 'PA' | 'FTA'

t.test('generated logs of five services are grouped as their statements say', async (t) => {
  holds(t, gradeServices(7), { GA: 0.95, FGA: 0.9, PA: 0.85, FTA: 0.8 })
})

t.test('labelled logs have the templates of their truth', async (t) => {
  const folder = process.env['LABELLED_LOGS']
  if (folder === undefined) return t.comment('skipped: LABELLED_LOGS names no folder of logs')
  holds(t, gradeFolder(folder), { GA: 0.86, FGA: 0.76, PA: 0.78, FTA: 0.68 })
})
