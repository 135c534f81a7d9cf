import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { childOf } from '../../support/service.js'
import { signal } from '../../support/signals.js'
import { killBoth } from '../kills.js'
import { copyProgram, ROOT } from '../program.js'
import type { Fault, Scene } from '../trial.js'

const MIGRATIONS = join(ROOT, 'schema', 'migrations')
/** of the program's own migrations */
const FIRST_VERSION = 5000
/** more than a start with its migrations takes on an idle machine */
const START_MS = 3_000

/** The newest text of each view of the landing table: a view that is altered, and says what it said. */
function alterations(): readonly string[] {
  const texts = new Map<string, string>()
  for (const file of readdirSync(MIGRATIONS).toSorted()) {
    const text = readFileSync(join(MIGRATIONS, file), 'utf8')
    const view = /^ALTER TABLE (\w+_mv) MODIFY QUERY$/m.exec(text)?.[1]
    if (view !== undefined) texts.set(view, text)
  }
  return [...texts.values()]
}

/** A program that is newer than any before: its database has to be migrated first. */
function newerProgram({ owner }: Scene, round: number): string {
  const { dir, main } = copyProgram('upgrade')
  owner.teardown(() => rmSync(dir, { recursive: true, force: true }))
  const altered = alterations()
  // each program knows the migrations of those before it
  for (let version = 0; version < (round + 1) * altered.length; version++) {
    const name = `${FIRST_VERSION + version}_altered.sql`
    writeFileSync(join(dir, 'schema', 'migrations', name), altered[version % altered.length] ?? '')
  }
  return main
}

/** Starts that are cut off on their way, each at another moment. */
async function killStarts({ installation, random }: Scene, times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    const launched = installation.launch()
    await sleep(random() * START_MS)
    // its ClickHouse alone, in every other one first
    if (random() < 0.5) {
      const engine = childOf(launched.pid)
      if (engine !== null) signal(engine, 'SIGKILL')
      await sleep(random() * 800)
    }
    await launched.kill()
  }
}

export const upgradeFaults: readonly Fault[] = [
  {
    id: 'kill-upgrading',
    title:
      '`kill -9` while a newer program alters the views under what waits, and right after its first start',
    rounds: 4,
    clickhouse: 'embedded',
    async strike(scene, round) {
      const { installation, random } = scene
      if (alterations().length === 0) scene.problem('no view is altered')
      await killBoth(installation, random)
      installation.main = newerProgram(scene, round)
      await killStarts(scene, round % 2)
      await installation.start()
      // what was begun before the upgrade is offered again about now
      await sleep(random() * 700)
      await killBoth(installation, random)
      await installation.start()
    },
  },
]
