import { setTimeout as sleep } from 'node:timers/promises'
import { tablesOf } from '../installation.js'
import type { Fault, Scene } from '../trial.js'
import { whileTold } from '../watch.js'
import type { UnrulyClickHouse } from '../../support/unruly-clickhouse.js'

const wayOf = ({ clickhouse }: Scene): UnrulyClickHouse => {
  if (clickhouse === null) throw new Error('bug: a fault of the way to ClickHouse has no such way')
  return clickhouse
}

/** Sets a mood for a while, and checks that health reports it all the time. */
async function reported(
  scene: Scene,
  mood: UnrulyClickHouse['mood'],
  [fromMs, toMs]: readonly [number, number] = [800, 2500],
): Promise<void> {
  const way = wayOf(scene)
  way.mood = mood
  try {
    await whileTold(
      () => scene.installation.api,
      'clickhouse',
      () => scene.pause(fromMs, toMs),
    )
  } finally {
    way.mood = 'well'
  }
}

/** Sets a mood until it has disturbed a few inserts. */
async function harmed(scene: Scene, mood: UnrulyClickHouse['mood'], times: number): Promise<void> {
  const way = wayOf(scene)
  const before = way.harmed
  way.mood = mood
  try {
    while (way.harmed - before < times) await sleep(20)
  } finally {
    way.mood = 'well'
  }
}

/** Targets of the views, with the first and the last of the chain. */
const TARGETS = [
  'events',
  'event_occurrences',
  'series_1s',
  'series_1m',
  'series_1d',
  'template_totals',
  'host_stats',
  'attribute_stats',
]

export const clickhouseFaults: readonly Fault[] = [
  {
    id: 'clickhouse-minutes',
    title: 'ClickHouse unreachable for three minutes',
    rounds: 1,
    clickhouse: 'server',
    strike: (scene) => reported(scene, 'gone', [180_000, 181_000]),
  },
  {
    id: 'reply-late',
    title: 'the insert happens, and is answered when the client has given up (after two minutes)',
    rounds: 1,
    clickhouse: 'server',
    async strike(scene) {
      const way = wayOf(scene)
      way.mood = 'reply delayed'
      while (way.holding === 0) await sleep(10)
      // Longer than the timeout of an insert.
      await sleep(125_000)
      way.mood = 'well'
    },
  },
  {
    id: 'clickhouse-gone',
    title: 'ClickHouse unreachable (connections cut, or never answered)',
    rounds: 2,
    clickhouse: 'server',
    strike: (scene, round) => reported(scene, round % 2 === 0 ? 'gone' : 'silent'),
  },
  {
    id: 'clickhouse-slow',
    title: 'ClickHouse slow: up to 3 s for every answer',
    rounds: 2,
    clickhouse: 'server',
    async strike(scene) {
      wayOf(scene).mood = 'slow'
      await scene.pause(1000, 4000)
      wayOf(scene).mood = 'well'
    },
  },
  {
    id: 'reply-lost',
    title: 'the insert happens and its reply is lost',
    rounds: 3,
    clickhouse: 'server',
    strike: (scene) => harmed(scene, 'reply lost', 2),
  },
  {
    id: 'insert-late',
    title: 'the insert happens after the client gave up, beside its retry',
    rounds: 3,
    clickhouse: 'server',
    strike: (scene) => harmed(scene, 'late', 2),
  },
  {
    id: 'insert-cut',
    title: 'the connection is cut in the middle of an insert',
    rounds: 3,
    clickhouse: 'server',
    strike: (scene) => harmed(scene, 'half sent', 3),
  },
  {
    id: 'reply-held',
    title: '`kill -9` of the service between an insert and its reply',
    rounds: 3,
    clickhouse: 'server',
    async strike(scene) {
      const way = wayOf(scene)
      way.mood = 'reply delayed'
      while (way.holding === 0) await sleep(10)
      // The batch must not contain rows that arrive meanwhile, so some must arrive.
      await sleep(1_000)
      await scene.installation.kill()
      way.mood = 'well'
      await scene.installation.start()
    },
  },
  {
    id: 'clickhouse-memory',
    title: 'ClickHouse refuses for memory',
    rounds: 2,
    clickhouse: 'server',
    strike: (scene) => reported(scene, 'starved'),
  },
  {
    id: 'clickhouse-parts',
    title: 'one of the tables refuses for too many parts, after others took the batch',
    rounds: 3,
    clickhouse: 'server',
    async strike(scene) {
      const table = TARGETS[Math.floor(scene.random() * TARGETS.length)] ?? 'events'
      scene.note(`too many parts in ${table}`)
      const tables = tablesOf(wayOf(scene).server.engine)
      try {
        await tables.command(`ALTER TABLE ${table} MODIFY SETTING parts_to_throw_insert = 1`)
        await whileTold(
          () => scene.installation.api,
          'clickhouse',
          () => scene.pause(500, 1500),
        )
        await tables.command(`ALTER TABLE ${table} RESET SETTING parts_to_throw_insert`)
      } finally {
        await tables.close()
      }
    },
  },
]
