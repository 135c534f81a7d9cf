import { CATALOGUE } from './catalogue/all.js'
import { readOptions, usage } from './options.js'
import { renderTable } from './table.js'
import { tryFault, type Fault, type Result } from './trial.js'
import { seedOf } from './options.js'

const options = readOptions(process.argv.slice(2))
if (options === null) process.stdout.write(usage(CATALOGUE))
else await main(options)

async function main({
  seed,
  only,
  rounds,
  lanes,
  stretch,
}: NonNullable<typeof options>): Promise<void> {
  const faults = CATALOGUE.filter(({ id }) => only.length === 0 || only.includes(id))
  const say = (text: string): void => void process.stderr.write(`${text}\n`)
  say(`seed ${seed}: ${faults.length} faults, ${lanes} at a time`)
  const waiting = [...faults]
  const results: Result[] = []
  const lane = async (): Promise<void> => {
    for (let fault = waiting.shift(); fault !== undefined; fault = waiting.shift())
      results.push(await one(fault))
  }
  const one = async (fault: Fault): Promise<Result> => {
    const result = await tryFault(fault, {
      seed: seedOf(seed, fault.id),
      rounds: Math.max(1, Math.round(fault.rounds * rounds)),
      stretch,
      note: (text) => say(`  ${fault.id}: ${text}`),
    })
    say(
      `${fault.id}: ${result.rounds} rounds in ${result.seconds} s, ${result.acknowledged} acknowledged, ` +
        `${result.lost} lost, ${result.doubled} doubled${result.skipped === null ? '' : `, skipped: ${result.skipped}`}`,
    )
    for (const problem of result.problems) say(`    ${problem}`)
    return result
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  process.stdout.write(renderTable(results, seed))
}
