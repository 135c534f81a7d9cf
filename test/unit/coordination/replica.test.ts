import { test } from 'tap'
import { createFollowing } from '../../../src/coordination/replica.js'
import { createInProcessState } from '../../../src/coordination/memory-state.js'
import { until } from '../../support/state-contract.js'

const unexpected = (error: unknown): never => {
  throw error
}

void test('looks that nobody asked for do not pile up while one takes long', async (t) => {
  const state = createInProcessState({ onError: unexpected })
  const following = await createFollowing({ state, onError: unexpected, everyMs: 1 })
  let reads = 0
  let end = (): void => undefined
  const slow = new Promise<void>((resolve) => (end = resolve))
  following.add(() => {
    reads++
    return slow
  })
  await until(() => reads === 1)
  // as many as would be waiting by then
  await new Promise((resolve) => setTimeout(resolve, 100))
  const waiting = [1, 2, 3].map(() => following.look())
  t.equal(new Set(waiting).size, 1, 'who comes meanwhile waits for the same look')
  const { knownSinceMs } = following
  end()
  await following.current()
  t.ok(reads < 20, `${reads} reads`)
  t.ok(following.knownSinceMs > knownSinceMs)
  await Promise.all(waiting)
  await following.close()
})
