import { test } from 'tap'
import { createCache } from '../../../src/state/cache.js'
import { createInProcessState } from '../../../src/state/in-process.js'
import { stateUnavailable } from '../../../src/state/state.js'

const newState = () =>
  createInProcessState({
    onError: (error) => {
      throw error
    },
  })

function counted() {
  let calls = 0
  const make = async () => {
    await new Promise((resolve) => setImmediate(resolve))
    return `text ${++calls}`
  }
  return { make, calls: () => calls }
}

void test('a text is made once until its time is over or it is dropped', async (t) => {
  const cache = createCache(newState())
  const { make } = counted()
  t.equal(await cache.through('k', 60_000, make), 'text 1')
  t.equal(await cache.through('k', 60_000, make), 'text 1')
  await cache.drop('k')
  t.equal(await cache.through('k', 20, make), 'text 2')
  await new Promise((resolve) => setTimeout(resolve, 50))
  t.equal(await cache.through('k', 60_000, make), 'text 3')
})

void test('many who ask at once share one making', async (t) => {
  const cache = createCache(newState())
  const { make, calls } = counted()
  const texts = await Promise.all(
    Array.from({ length: 20 }, () => cache.through('k', 60_000, make)),
  )
  t.strictSame(new Set(texts), new Set(['text 1']))
  t.equal(calls(), 1)
})

void test('what fails to be made is tried again', async (t) => {
  const cache = createCache(newState())
  await t.rejects(
    cache.through('k', 60_000, () => Promise.reject(new Error('query'))),
    { message: 'query' },
  )
  t.equal(await cache.through('k', 60_000, counted().make), 'text 1')
})

void test('without the state every text is made afresh', async (t) => {
  const down = () => Promise.reject(stateUnavailable('redis does not answer'))
  const cache = createCache({ get: down, set: down, delete: down })
  const { make } = counted()
  t.equal(await cache.through('k', 60_000, make), 'text 1')
  t.equal(await cache.through('k', 60_000, make), 'text 2')
  await t.resolves(cache.drop('k'))
})
