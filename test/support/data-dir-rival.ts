/** A process that locks the data directory of a message, for tests in which several try at once. */
import { openDataDir } from '../../src/coordination/data-dir.js'

process.on('message', (path) => {
  let outcome = 'taken'
  try {
    openDataDir(String(path))
  } catch (error) {
    outcome = error instanceof Error ? error.message : String(error)
  }
  process.send?.(outcome)
})
process.send?.('ready')
