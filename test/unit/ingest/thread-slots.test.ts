import { test } from 'tap'
import { ThreadSlots } from '../../../src/ingest/thread-slots.js'

void test('what is encoded again takes a thread like a new task, and one stays for short ones', async (t) => {
  const turns = new ThreadSlots(1, 25)
  const endLong = turns.begin(100)
  t.ok(turns.isShort, 'one long task is enough')
  t.ok(turns.hasFree)
  let [long, short] = [0, 0]
  const again = turns.again(100).then((end) => {
    long++
    return end
  })
  const shortAgain = turns.again(1).then((end) => {
    short++
    return end
  })
  turns.serve()
  const endShort = await shortAgain
  t.same([long, short], [0, 1], 'a short one passes the long one that waits')
  t.notOk(turns.hasFree)
  endLong()
  turns.serve()
  const endAgain = await again
  t.notOk(turns.hasFree)
  endShort()
  endAgain()
  t.ok(turns.hasFree)
  t.notOk(turns.isShort)
})
