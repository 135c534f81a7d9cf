import { setTimeout as sleep } from 'node:timers/promises'
import { signal } from '../support/signals.js'
import type { Installation } from './installation.js'

/** Does nothing when ClickHouse has just ended by itself. */
export function killEngine(installation: Installation): void {
  const pid = installation.enginePid()
  if (pid !== null) signal(pid, 'SIGKILL')
}

/** `kill -9` of the service and of its ClickHouse, in random order, without a restart. */
export async function killBoth(installation: Installation, random: () => number): Promise<void> {
  const isEngineFirst = random() < 0.5
  if (isEngineFirst) killEngine(installation)
  await sleep(random() * 200)
  const engine = installation.enginePid()
  const killed = installation.kill()
  if (!isEngineFirst && engine !== null) signal(engine, 'SIGKILL')
  await killed
}

/** `kill -9` of the service, of ClickHouse or of both, with a restart. */
export async function killAny(installation: Installation, random: () => number): Promise<string> {
  const what = Math.floor(random() * 3)
  if (what === 0) {
    killEngine(installation)
    return 'ClickHouse'
  }
  if (what === 1) await installation.kill()
  else await killBoth(installation, random)
  await installation.start()
  return what === 1 ? 'the service' : 'both'
}
