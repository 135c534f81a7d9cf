import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { bound } from './bound.js'
import { freePort } from './ports.js'
import { toolPath } from './tools.js'

interface PrometheusAlert {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly startsAt: string
  readonly endsAt: string
}

/** Debian's prometheus-alertmanager, which keeps everything in a folder of the test. */
export async function startAlertmanager(t: Pick<Test, 'teardown' | 'testdir'>) {
  const folder = t.testdir()
  const config = join(folder, 'alertmanager.yml')
  writeFileSync(config, 'route: { receiver: none }\nreceivers: [{ name: none }]\n')
  const port = await freePort()
  const args = [
    `--config.file=${config}`,
    `--storage.path=${folder}`,
    `--web.listen-address=127.0.0.1:${port}`,
    '--cluster.listen-address=',
  ]
  const child = spawn(...bound(toolPath('prometheus-alertmanager'), args), { stdio: 'ignore' })
  const ended = once(child, 'exit')
  t.teardown(async () => {
    child.kill()
    await ended
  })
  const url = `http://127.0.0.1:${port}`
  const isReady = (): Promise<boolean> =>
    fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
  return {
    url,
    isReady,
    async alerts(): Promise<readonly PrometheusAlert[]> {
      return (await (await fetch(`${url}/api/v2/alerts`)).json()) as PrometheusAlert[]
    },
  }
}
