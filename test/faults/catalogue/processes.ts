import { setTimeout as sleep } from 'node:timers/promises'
import { signal } from '../../support/signals.js'
import { untilWell, whileTold } from '../watch.js'
import { killBoth, killEngine } from '../kills.js'
import type { Fault } from '../trial.js'
import { breakWorker, withWorkersExposed } from '../worker-breaker.js'

export const processFaults: readonly Fault[] = [
  {
    id: 'kill-service',
    title: '`kill -9` of the service',
    rounds: 4,
    clickhouse: 'embedded',
    async strike({ installation, random }) {
      await installation.kill()
      await sleep(random() * 300)
      await installation.start()
    },
  },
  {
    id: 'kill-starting',
    title: '`kill -9` of the service while it starts',
    rounds: 3,
    clickhouse: 'embedded',
    async strike({ installation, random }) {
      await installation.kill()
      for (let i = 0; i < 2; i++) {
        const launched = installation.launch()
        await sleep(random() * 2500)
        await launched.kill()
      }
      await installation.start()
    },
  },
  {
    id: 'kill-clickhouse',
    title: '`kill -9` of ClickHouse',
    rounds: 6,
    clickhouse: 'embedded',
    async strike(scene) {
      killEngine(scene.installation)
      // The second kill comes while it starts.
      if (scene.random() < 0.3) {
        await sleep(scene.random() * 800)
        killEngine(scene.installation)
      }
    },
  },
  {
    id: 'kill-both',
    title: '`kill -9` of both',
    rounds: 4,
    clickhouse: 'embedded',
    async strike({ installation, random }) {
      await killBoth(installation, random)
      await installation.start()
    },
  },
  {
    id: 'kill-worker',
    title: 'a worker thread ends, throws, or is terminated in the middle of its work',
    rounds: 6,
    clickhouse: 'embedded',
    prepare: (setting) => ({ ...withWorkersExposed(setting), WORKERS: '2' }),
    strike: (scene) => breakWorker(scene),
  },
  {
    id: 'sigterm',
    title: 'SIGTERM in the middle',
    rounds: 3,
    clickhouse: 'embedded',
    async strike({ installation, problem }) {
      const { code, signal } = await installation.stop()
      if (code !== 0) problem(`SIGTERM: it ended with ${code ?? signal}`)
      await installation.start()
    },
  },
  {
    id: 'hung-clickhouse',
    title: 'ClickHouse stands still (SIGSTOP)',
    rounds: 1,
    clickhouse: 'embedded',
    async strike({ installation, problem }) {
      const pid = installation.enginePid()
      if (pid === null) return problem('there is no engine')
      signal(pid, 'SIGSTOP')
      try {
        // No SIGCONT follows: the service must detect it, kill it and start another.
        await whileTold(
          () => installation.api,
          'clickhouse',
          async () => sleep(2000),
        )
        await untilWell(installation, 120_000)
        if (installation.enginePid() === pid) problem('the engine that stood still is still there')
      } finally {
        // The process has ended, as expected.
        signal(pid, 'SIGCONT')
      }
    },
  },
]
