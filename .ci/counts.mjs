// Prints the counts of TAP files as the last line: assertions that passed, failed, were skipped. Of a test file that ran twice the
// second run counts.
import { readFileSync } from 'node:fs'

const counts = { ok: 0, failed: 0, skipped: 0 }
const sections = new Map()
for (const file of process.argv.slice(2)) {
  let section = []
  sections.set(file, section)
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    if (/^# Subtest: \S+\.js$/.test(line)) {
      section = []
      sections.set(line, section)
    }
    section.push(line)
  }
}
let failedBefore = 0
for (const line of [...sections.values()].flat()) {
  const match = /^\s*(not )?ok\b(.*)$/.exec(line)
  // a file that ended by itself has no assertion that failed
  if (/^(not )?ok .*# time=/.test(line)) {
    if (match?.[1] !== undefined && counts.failed === failedBefore) counts.failed++
    failedBefore = counts.failed
  }
  // a subtest's own line repeats what its assertions said
  if (match === null || / \{\s*$/.test(line) || /# time=/.test(line)) continue
  if (/# (SKIP|TODO)/i.test(match[2])) counts.skipped++
  else if (match[1] === undefined) counts.ok++
  else counts.failed++
}
console.log(`${counts.ok} passed, ${counts.failed} failed, ${counts.skipped} skipped`)
