/** A process that takes the data directory it is told of, for tests in which several try at once. */
import { openDataDir } from '../../src/coordination/data-dir.js'

process.on('message', (path) => {
  let told = 'taken'
  try {
    openDataDir(String(path))
  } catch (error) {
    told = error instanceof Error ? error.message : String(error)
  }
  process.send?.(told)
})
process.send?.('ready')
