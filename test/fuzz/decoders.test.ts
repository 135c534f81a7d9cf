/**
 * Everything that takes bytes from outside, fed with changes of well-formed inputs. `FUZZ_SEED` repeats a run,
 * `FUZZ_TIMES` makes it longer, `FUZZ_KEEP=1` writes what reaches new code to test/fixtures/corpus, and
 * `FUZZ_TRACE=FILE` tells the input that hangs or ends the process.
 */
import t from 'tap'
import { fuzz } from './fuzz.js'
import { SEED } from './settings.js'
import { TARGETS } from './targets.js'

t.comment(`FUZZ_SEED=${SEED}`)

for (const target of TARGETS) {
  t.test(`${target.name} takes whatever comes`, { timeout: 0 }, async (t) => {
    const outcome = await fuzz(target)
    const { failure, tried, inputs, functions, missing } = outcome
    t.comment(
      `${tried} tried, ${inputs} kept, ${functions} functions, ${missing} characters missed`,
    )
    if (failure === null) t.pass('no property was broken')
    else t.fail(String(failure.error), { input: failure.input, error: failure.error, seed: SEED })
  })
}
