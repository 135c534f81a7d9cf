import { test } from 'tap'
import { SpentTime } from '../../../src/ingest/spent-time.js'

const sleepMs = (ms: number): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

const skip = process.platform === 'linux' ? false : 'the kernel tells it on Linux only'

void test('time in which the thread has no core is left out', { skip }, (t) => {
  const spent = new SpentTime()
  const beganMs = performance.now()
  sleepMs(300)
  const waited = spent.lap()
  const passedMs = performance.now() - beganMs
  t.ok(waited < passedMs / 2, `${waited} of ${passedMs} ms`)
  t.end()
})

void test('CPU time counts as spent', (t) => {
  const spent = new SpentTime()
  const { user, system } = process.cpuUsage()
  const cpuMs = (): number => {
    const now = process.cpuUsage()
    return (now.user - user + now.system - system) / 1000
  }
  while (cpuMs() < 200);
  const counted = spent.lap()
  t.ok(counted > 50, `${counted} ms`)
  t.ok(spent.lap() < counted, 'the next one begins anew')
  t.end()
})
