import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { childOf } from '../../support/service.js'
import { signal } from '../../support/signals.js'
import { killBoth } from '../kills.js'
import { copyProgram } from '../program.js'
import type { Fault, Scene } from '../trial.js'

/** The number of the newer program's own migrations. */
const FIRST_VERSION = 5000
const ADDED = 8
/** A start with its migrations on an idle machine takes less. */
const START_MS = 3_000

/** A newer program, which has to migrate the database first. */
function newerProgram({ owner }: Scene, round: number): string {
  const { dir, main } = copyProgram('upgrade')
  owner.teardown(() => rmSync(dir, { recursive: true, force: true }))
  // Each program knows the migrations of those before it.
  for (let i = 0; i < (round + 1) * ADDED; i++)
    writeFileSync(
      join(dir, 'schema', 'migrations', `${FIRST_VERSION + i}_added.sql`),
      `-- shard: view
CREATE TABLE IF NOT EXISTS added_${i} (id UInt64) ENGINE = {{engine:MergeTree}} ORDER BY id;

CREATE MATERIALIZED VIEW IF NOT EXISTS added_${i}_mv TO added_${i} AS SELECT id FROM events;

ALTER TABLE events ADD COLUMN IF NOT EXISTS added_${i} UInt8;
`,
    )
  return main
}

/** Starts that are killed at different times. */
async function killStarts({ installation, random }: Scene, times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    const launched = installation.launch()
    await sleep(random() * START_MS)
    // In half of the cases its ClickHouse is killed first.
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
      '`kill -9` while a newer program adds tables, views and columns under what waits, and right after its first start',
    rounds: 4,
    clickhouse: 'embedded',
    async strike(scene, round) {
      const { installation, random } = scene
      await killBoth(installation, random)
      installation.main = newerProgram(scene, round)
      await killStarts(scene, round % 2)
      await installation.start()
      // A batch of the earlier program is sent again at about this time.
      await sleep(random() * 700)
      await killBoth(installation, random)
      await installation.start()
    },
  },
]
