import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { childOf } from '../../support/service.js'
import { signal } from '../../support/signals.js'
import { countAll } from '../count.js'
import { disks, missingDisk } from '../disk.js'
import { Installation, openTables } from '../installation.js'
import { Ledger } from '../ledger.js'
import { Load } from '../load.js'
import type { Fault, Scene } from '../trial.js'

/** A start on a busy machine takes less. */
const START_MS = 2_500
const END_MS = 15_000

/** Sends a body to a new installation, and counts it in every table. */
async function takeOne(
  { random, ledger, promptness, problem }: Scene,
  fresh: Installation,
): Promise<void> {
  await fresh.start()
  const own = new Ledger(ledger.size, Date.now())
  const options = {
    ledger: own,
    random,
    promptness,
    collectors: () => [fresh.collector],
    senders: 1,
    pauseMs: 5,
  }
  const load = new Load(options)
  const isTaken = await load.untilTaken(30_000)
  await load.stop()
  if (!isTaken) return problem('a new installation takes nothing')
  await fresh.settle()
  await fresh.stop()
  const tables = await openTables(fresh.dataDir)
  try {
    const { lost, doubled, problems } = await countAll(tables.query, own)
    for (const text of problems) problem(text)
    if (lost + doubled > 0) problem(`a new installation: ${lost} lost, ${doubled} doubled`)
  } finally {
    await tables.close()
  }
}

/** ClickHouse removes merged parts after about 28 s; the kernel writes unsynced pages after 30 to 35 s. */
const REMOVED_MS = 42_000

async function cutPower(installation: Installation): Promise<void> {
  const engine = installation.enginePid()
  const killed = installation.kill()
  if (engine !== null) signal(engine, 'SIGKILL')
  await killed
  disks.cutPower(installation.dataDir)
}

/** Puts the whole installation on a disk whose power can fail. */
const ON_A_DISK: Pick<Fault, 'clickhouse' | 'missing' | 'prepare'> = {
  clickhouse: 'embedded',
  missing: missingDisk,
  prepare: (setting) => {
    disks.make(setting, setting.dataDir, 1024)
    return {}
  },
}

export const startFaults: readonly Fault[] = [
  {
    id: 'power-cut',
    title: 'power cut: the disk as it was at that moment, without what nobody had synced',
    rounds: 6,
    ...ON_A_DISK,
    async strike({ installation, random }) {
      await cutPower(installation)
      await sleep(random() * 100)
      await installation.start()
    },
  },
  {
    id: 'power-cut-merged',
    title: 'power cut when ClickHouse has merged parts and removed what they were made of',
    rounds: 1,
    ...ON_A_DISK,
    async strike({ installation, random }) {
      await sleep(REMOVED_MS + random() * 6_000)
      await cutPower(installation)
      await installation.start()
    },
  },
  {
    id: 'second-start',
    title: 'a second start on the same data directory',
    rounds: 3,
    clickhouse: 'embedded',
    async strike({ installation, random, problem }) {
      const { pid } = installation.service
      const rival = installation.launch()
      await sleep(random() * 200)
      const other = installation.launch()
      for (const launched of [rival, other]) {
        const { code, stderr } = await launched.ended
        if (code === 0 || !stderr.includes(`is in use by process ${pid}`))
          problem(`a second start ended with ${code}: ${stderr.slice(-300)}`)
      }
      if (installation.service.pid !== pid) problem('the first one was started again')
    },
  },
  {
    id: 'sigterm-starting',
    title: 'SIGTERM while it starts',
    rounds: 4,
    clickhouse: 'embedded',
    async strike({ installation, random, problem }, round) {
      await installation.stop()
      const launched = installation.launch()
      await sleep(random() * START_MS)
      // Every other round waits until its ClickHouse runs.
      const isBegun = (): boolean => round % 2 === 0 || childOf(launched.pid) !== null
      for (const until = Date.now() + 30_000; !isBegun() && Date.now() < until;) await sleep(5)
      signal(launched.pid, 'SIGTERM')
      const ended = await Promise.race([launched.ended, sleep(END_MS).then(() => null)])
      if (ended === null) problem(`SIGTERM while it starts: it runs on after ${END_MS / 1000} s`)
      // Before its first line of code runs, the signal ends the process.
      else if (ended.code !== 0 && (round % 2 === 1 || ended.signal !== 'SIGTERM'))
        problem(`SIGTERM while it starts: ${ended.code ?? ended.signal}`)
      await launched.kill()
      await installation.start()
    },
  },
  {
    id: 'kill-migrating',
    title: '`kill -9` of ClickHouse while a new database is made',
    rounds: 3,
    clickhouse: 'embedded',
    async strike(scene, round) {
      const { random, owner, dir, installation } = scene
      const dataDir = join(dir, `new-${round}`)
      mkdirSync(dataDir, { mode: 0o700 })
      const fresh = new Installation(owner, { dataDir, env: installation.env })
      const launched = fresh.launch()
      for (let kills = 0, until = Date.now() + 20_000; kills < 2 && Date.now() < until;) {
        const engine = childOf(launched.pid)
        await sleep(engine === null ? 5 : 200 + random() * 700)
        if (engine === null) continue
        kills++
        signal(engine, 'SIGKILL')
      }
      // It recovers by itself, or exits with a reason and is restarted.
      await launched.ready().catch(() => undefined)
      await launched.kill()
      await takeOne(scene, fresh)
    },
  },
]
