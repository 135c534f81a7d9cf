// Prints the counts of TAP files as the last line: assertions that passed, failed, were skipped.
import { readFileSync } from 'node:fs'

const counts = { ok: 0, failed: 0, skipped: 0 }
const lines = process.argv.slice(2).flatMap((file) => readFileSync(file, 'utf8').split('\n'))
let failedBefore = 0
for (const line of lines) {
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
