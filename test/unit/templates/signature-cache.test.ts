import * as fc from 'fast-check'
import t from 'tap'
import { SignatureCache } from '../../../src/templates/signature-cache.js'

t.test("a reader of the same memory sees the writer's entries", async (t) => {
  const writer = SignatureCache.create(64)
  const reader = new SignatureCache(writer.buffer)
  t.equal(reader.get(5, 6), 0)
  writer.put(5, 6, 42)
  t.equal(reader.get(5, 6), 42)
  t.equal(reader.get(5, 7), 0)
  writer.put(5, 6, 43)
  t.equal(reader.get(5, 6), 43, 'a signature can move to another template')
  writer.clear()
  t.equal(reader.get(5, 6), 0)
})

t.test(
  'a lookup never returns the number of another signature, even in a full cache',
  async (t) => {
    const hash = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })
    t.doesNotThrow(() =>
      fc.assert(
        fc.property(
          fc.array(fc.tuple(hash, hash), { minLength: 1, maxLength: 200 }),
          (signatures) => {
            const cache = SignatureCache.create(16)
            const size = cache.buffer.byteLength
            const numbers = new Map<string, number>()
            for (const [i, [lo, hi]] of signatures.entries()) {
              cache.put(lo, hi, i + 1)
              numbers.set(`${lo}/${hi}`, i + 1)
            }
            const right = signatures.every(([lo, hi]) => {
              const no = cache.get(lo, hi)
              return no === 0 || no === numbers.get(`${lo}/${hi}`)
            })
            return right && cache.buffer.byteLength === size
          },
        ),
      ),
    )
  },
)

t.test('a half-written entry is a miss', async (t) => {
  const cache = SignatureCache.create(4)
  cache.put(7, 8, 1)
  const words = new Int32Array(cache.buffer)
  const at = words.indexOf(7)
  words[at + 2] = 2
  t.equal(cache.get(7, 8), 0)
})
