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

/** Views that a migration has made again: what drops each, and what makes it as it is. */
function remakes(): readonly string[] {
  const texts = readdirSync(MIGRATIONS)
    .toSorted()
    .map((file) => readFileSync(join(MIGRATIONS, file), 'utf8'))
  return texts.flatMap((drop) => {
    const view = /^DROP VIEW IF EXISTS (\w+)$/m.exec(drop)?.[1]
    if (view === undefined) return []
    const made = `CREATE MATERIALIZED VIEW IF NOT EXISTS ${view} `
    return [drop, texts.findLast((text) => text.startsWith(made)) ?? '']
  })
}

/** A program that is newer than any before: its database has to be migrated first. */
function newerProgram({ owner }: Scene, round: number): string {
  const { dir, main } = copyProgram('upgrade')
  owner.teardown(() => rmSync(dir, { recursive: true, force: true }))
  const texts = remakes()
  // each program knows the migrations of those before it
  for (let version = 0; version < (round + 1) * texts.length; version++) {
    const name = `${FIRST_VERSION + version}_again.sql`
    writeFileSync(join(dir, 'schema', 'migrations', name), texts[version % texts.length] ?? '')
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
      '`kill -9` while a newer program makes views anew under what waits, and right after its first start',
    rounds: 4,
    clickhouse: 'embedded',
    async strike(scene, round) {
      const { installation, random } = scene
      if (remakes().length === 0) scene.problem('no view is made again')
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
