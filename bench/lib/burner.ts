import { fork } from 'node:child_process'
import { setPriority } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** One turn of a burner: it computes for its share of it and sleeps for the rest. */
const TURN_MS = 20

/**
 * Burns CPU in a process of its own, which does nothing else.
 *
 * @param share of a core
 * @returns ends it
 */
export function startBurner(share: number, priority: number): () => void {
  const child = fork(fileURLToPath(import.meta.url), [String(share)], { execArgv: [] })
  if (child.pid !== undefined) setPriority(child.pid, priority)
  return () => {
    child.kill('SIGKILL')
  }
}

async function burn(share: number): Promise<never> {
  for (let dueMs = performance.now(); ; dueMs += TURN_MS) {
    const before = process.cpuUsage()
    for (let spentMs = 0; spentMs < share * TURN_MS;) {
      const { user, system } = process.cpuUsage(before)
      spentMs = (user + system) / 1000
    }
    await sleep(Math.max(0, dueMs + TURN_MS - performance.now()))
  }
}

const [, file, share] = process.argv
if (file === fileURLToPath(import.meta.url) && share !== undefined) {
  process.on('disconnect', () => process.exit())
  await burn(Number(share))
}
