import { setTimeout as sleep } from 'node:timers/promises'
import { INGEST_KEY } from '../../support/service.js'
import { killAny } from '../kills.js'
import type { Fault, Scene } from '../trial.js'
import { isWell, untilHealth } from '../watch.js'

/** of a source that comes and goes */
const MESSAGES = 30
const TRIES = 20
const CLEAR_ALL = '/api/monitoring/clear-all'
/** longer than a deletion or a correction takes on an idle machine */
const MIDDLE_MS = 400

type Reply = { readonly status: number; readonly text: string } | null

/** One request by somebody who has just logged in; null when there is no answer. */
async function ask(
  { installation, promptness, problem }: Scene,
  [method, path, body]: readonly [string, string, unknown?],
): Promise<Reply> {
  try {
    const caller = await installation.logIn()
    const startedMs = performance.now()
    const reply = await caller.call(method, path, body)
    const text = await reply.text()
    const late = promptness.judge(path === CLEAR_ALL ? 'clearing' : 'answer', startedMs)
    if (late !== null) problem(`${method} ${path} ${late}`)
    return { status: reply.status, text }
  } catch {
    return null
  }
}

/** Asks until it is answered with one of these; who gets no answer, or a 503, asks again. */
async function insist(
  scene: Scene,
  request: readonly [string, string, unknown?],
  wanted: readonly number[],
): Promise<Reply> {
  let last: Reply = null
  for (let i = 0; i < TRIES; i++) {
    last = await ask(scene, request)
    if (last !== null && wanted.includes(last.status)) return last
    await sleep(300)
  }
  scene.problem(`${request[0]} ${request[1]} is answered ${last?.status} ${last?.text}`)
  return null
}

/** Strikes somewhere in the middle of a request. */
async function struckWhile(
  scene: Scene,
  request: readonly [string, string, unknown?],
): Promise<void> {
  const { installation, random, note } = scene
  const asked = ask(scene, request)
  await sleep(random() * MIDDLE_MS)
  const what = await killAny(installation, random)
  const reply = await asked
  note(`${what} was killed; ${request[0]} was answered ${reply?.status ?? 'not at all'}`)
  await untilHealth(() => installation.api, isWell)
}

/** Sends until it is acknowledged: messages that nothing else is like. */
async function send({ installation, random }: Scene, source: string): Promise<void> {
  const mark = Math.floor(random() * 1e9)
  const lines = Array.from({ length: MESSAGES }, (_, i) =>
    JSON.stringify({ source, severity: 'ERROR', message: `part ${i} of ${mark} of ${source}` }),
  )
  for (let i = 0; i < TRIES; i++) {
    const reply = await fetch(`${installation.collector}/ingest`, {
      method: 'POST',
      headers: { authorization: `Bearer ${INGEST_KEY}` },
      body: lines.join('\n'),
    }).catch(() => null)
    if (reply?.status === 202) return
    await sleep(200)
  }
  throw new Error(`nothing is taken for ${source}`)
}

/** Messages of a source that are counted once everything is written. */
async function countOf({ installation, load }: Scene, source: string): Promise<number> {
  load.pause(true)
  await installation.settle()
  load.pause(false)
  const { get } = await installation.logIn()
  const top = await get<{ items: readonly { source: string; count: number }[] }>(
    '/api/analytics/top-sources?window=24h&limit=50',
  )
  return top.items.find((item) => item.source === source)?.count ?? 0
}

export const changeFaults: readonly Fault[] = [
  {
    id: 'kill-deleting',
    title: '`kill -9` in the middle of deleting a source, and of making it again',
    rounds: 4,
    clickhouse: 'embedded',
    async strike(scene, round) {
      const { installation, problem } = scene
      const source = `comes and goes ${round}`
      const path = `/api/sources/${encodeURIComponent(source)}`
      await send(scene, source)
      await struckWhile(scene, ['DELETE', path])
      // asked again it is gone, or was gone already
      await insist(scene, ['DELETE', path], [200, 404])
      const left = await countOf(scene, source)
      if (left > 0) problem(`${left} messages of a deleted source are counted`)
      await struckWhile(scene, ['POST', '/api/sources', { name: source }])
      await send(scene, source)
      await killAny(installation, scene.random)
      await untilHealth(() => installation.api, isWell)
      const again = await countOf(scene, source)
      if (again !== MESSAGES)
        problem(`${again} of ${MESSAGES} messages are counted for a source that was made again`)
      // the tables hold nothing of it in the end, or it would be counted as too many
      await insist(scene, ['DELETE', path], [200])
    },
  },
  {
    id: 'kill-correcting',
    title: '`kill -9` in the middle of correcting the priority of an event that repeats',
    rounds: 5,
    clickhouse: 'embedded',
    async strike(scene, round) {
      const { installation, problem } = scene
      const { get } = await installation.logIn()
      const page = await get<{ items: readonly { id: number; priority: string }[] }>(
        '/api/logs?search=heartbeat&limit=50',
      )
      const event = page.items[Math.floor(scene.random() * page.items.length)]
      if (event === undefined) return scene.note('nothing is there to be corrected yet')
      const priority = ['P1', 'P2', 'P3', 'P4'].filter((one) => one !== event.priority)[round % 3]
      const path = `/api/logs/${event.id}`
      const request = ['PATCH', `${path}/priority`, { priority, reason: 'tried' }] as const
      await struckWhile(scene, request)
      await insist(scene, request, [200])
      const { get: getAgain } = await installation.logIn()
      const corrected = await getAgain<{ priority: string }>(path)
      if (corrected.priority !== priority)
        problem(`a corrected event has ${corrected.priority} and not ${priority}`)
    },
  },
  {
    id: 'kill-clearing',
    title: '`kill -9` in the middle of clearing everything',
    rounds: 3,
    clickhouse: 'embedded',
    async strike(scene) {
      const { installation, load, ledger, problem } = scene
      load.pause(true)
      await load.untilSettled()
      const bodies = ledger.size
      await struckWhile(scene, ['DELETE', CLEAR_ALL])
      await insist(scene, ['DELETE', CLEAR_ALL], [200])
      for (let no = 0; no < bodies; no++) ledger.settle(no, 'destroyed')
      const { get } = await installation.logIn()
      const { total } = await get<{ total: number }>('/api/analytics/severity-breakdown?window=30d')
      if (total > 0) problem(`${total} messages are counted after everything was cleared`)
      load.pause(false)
    },
  },
]
