import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import { Intake } from '../../../../src/ingest/listeners/intake.js'
import type { ListenerBody } from '../../../../src/ingest/listener.js'
import { overloaded } from '../../../../src/ingest/refusals.js'

const key = { id: 'k', sources: null, autoRegister: true, defaultSource: null }
const RESULT = {
  received: 1,
  accepted: 1,
  rejected: 0,
  dropped: 0,
  bytes: 4,
  ms: 0,
  errors: [],
  sources: [],
  ids: [],
  span: null,
  refusal: null,
  reply: null,
}

void test('a flood of small batches is stored in order, few at a time, and stops the reading', async (t) => {
  const stored: number[] = []
  const full: boolean[] = []
  let running = 0
  let most = 0
  let refusals = 3
  const intake = new Intake({
    listeners: {
      key: () => key,
      hasRoom: () => true,
      submit: async ({ bytes }) => {
        running++
        most = Math.max(most, running)
        await sleep(0)
        running--
        // The pipeline has no room in the middle.
        if (stored.length === 200 && refusals-- > 0) throw overloaded()
        stored.push(Buffer.from(bytes).readUInt32BE())
        return RESULT
      },
    },
    onFull: (isFull) => full.push(isFull),
    onError: (error) => t.fail(String(error)),
  })
  const batch = (no: number): ListenerBody => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(no)
    return { protocol: 'forward', format: 'forward/message', bytes }
  }
  const all = Array.from({ length: 20_000 }, (_, no) => intake.submit(batch(no)))
  t.same(full, [true], 'tiny batches count too')
  await Promise.all(all)
  t.ok(most <= 64, `${most} at once`)
  t.equal(new Set(stored).size, 20_000)
  t.same(full, [true, false])
  t.equal(intake.bytes, 0)
  const late = stored.filter((no, i) => Math.abs(no - i) > 64)
  t.same(late, [], 'a batch that was refused keeps its place')
})
