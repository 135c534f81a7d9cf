import { test } from 'tap'
import { BufferPool } from '../../../src/lib/buffer-pool.js'
import { trimWhenIdle } from '../../../src/lib/trim-when-idle.js'
import { eventually } from '../../support/live-service.js'

const MIB = 1024 * 1024

void test('free buffers are given up when none is acquired any more, after each time of use', async (t) => {
  const pool = new BufferPool(4 * MIB)
  t.teardown(trimWhenIdle([pool], 20))
  for (let use = 1; use <= 2; use++) {
    pool.release(pool.acquire(MIB))
    t.equal(pool.freeBytes, MIB)
    await eventually(
      async () => pool.freeBytes,
      (bytes) => bytes === 0,
    )
  }
})
