import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
// What V8 exposes under the flag.
const collect: () => void = runInNewContext('gc')

/** Collects garbage for as long as something is waited for, as it would be collected under load. */
export async function whileCollecting<T>(work: Promise<T>): Promise<T> {
  let isOver = false
  const stop = (): void => void (isOver = true)
  work.then(stop, stop)
  const over = (): boolean => isOver
  while (!over()) {
    collect()
    await sleep(100)
  }
  return await work
}
