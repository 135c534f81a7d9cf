/** slowhttptest against the built service: 1,000 connections of each kind of slowness, and all others are served. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { Latencies } from '../../bench/lib/latency.js'
import { collect, startLiveService } from '../support/live-service.js'
import { INGEST_KEY } from '../support/service.js'

const SECONDS = Number(process.env['SLOW_SECONDS'] ?? 20)
const CONNECTIONS = 1_000
const EVENT = '{"source":"beside","message":"beside slow ones"}'
const isMissing = spawnSync('slowhttptest', ['-h']).error !== undefined

const MODES: readonly (readonly [string, string, readonly string[]])[] = [
  ['slow heads', '/api/monitoring/health', ['-H', '-i', '3']],
  ['slow bodies', '/api/auth/login', ['-B', '-i', '3', '-s', '8192', '-f', 'application/json']],
  ['slow readers', '/docs', ['-X', '-w', '1', '-y', '8', '-n', '5', '-z', '8', '-k', '3']],
  ['ranges', '/docs', ['-R']],
]

for (const [what, path, options] of MODES) {
  t.test(
    `${what}: others are served`,
    { skip: isMissing ? 'slowhttptest is not installed' : false },
    async (t) => {
      const service = await startLiveService(t, { LOG_LEVEL: 'warn' })
      const common = ['-c', String(CONNECTIONS), '-r', '500', '-l', String(SECONDS), '-p', '5']
      const attacker = spawn('slowhttptest', [...options, ...common, '-u', service.api + path])
      const ended = once(attacker, 'close')
      t.teardown(() => attacker.kill('SIGKILL'))
      const latencies = new Latencies()
      while (attacker.exitCode === null && attacker.signalCode === null) {
        const startedMs = performance.now()
        const health = await service.call('GET /api/monitoring/health')
        const sent = await collect(service, 'POST /ingest', { token: INGEST_KEY, body: EVENT })
        latencies.record(performance.now() - startedMs)
        if (health.status !== 200 || sent.status !== 202)
          t.fail('a client was refused', { health: health.text, sent: sent.text })
        await sleep(100)
      }
      await ended
      t.comment(
        `${latencies.count} pairs of requests, p50 ${latencies.at(50)} ms, p99 ${latencies.at(99)} ms`,
      )
      t.ok(latencies.count > 0, 'they were answered all along')
      t.equal((await service.call('GET /api/monitoring/health')).body.status, 'ok')
    },
  )
}
