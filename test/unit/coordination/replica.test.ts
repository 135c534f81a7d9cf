import { test } from 'tap'
import { createReplica } from '../../../src/coordination/replica.js'
import { createInProcessState } from '../../../src/coordination/memory-state.js'
import { until } from '../../support/state-contract.js'

const unexpected = (error: unknown): never => {
  throw error
}

void test('periodic catch-ups do not pile up while one takes long', async (t) => {
  const state = createInProcessState({ onError: unexpected })
  const replica = await createReplica({ state, onError: unexpected, everyMs: 1 })
  let reads = 0
  let end = (): void => undefined
  const slow = new Promise<void>((resolve) => (end = resolve))
  replica.onCatchUp(() => {
    reads++
    return slow
  })
  await until(() => reads === 1)
  // By then many would be waiting.
  await new Promise((resolve) => setTimeout(resolve, 100))
  const waiting = [1, 2, 3].map(() => replica.catchUp())
  t.equal(new Set(waiting).size, 1, 'calls meanwhile wait for the same catch-up')
  const { caughtUpAtMs: knownSinceMs } = replica
  end()
  await replica.refresh()
  t.ok(reads < 20, `${reads} reads`)
  t.ok(replica.caughtUpAtMs > knownSinceMs)
  await Promise.all(waiting)
  await replica.close()
})
