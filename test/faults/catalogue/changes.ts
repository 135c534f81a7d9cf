import { setTimeout as sleep } from 'node:timers/promises'
import { INGEST_KEY } from '../../support/service.js'
import { killAny } from '../kills.js'
import type { Fault, Scene } from '../trial.js'
import { untilWell } from '../watch.js'

/** Messages of the source that is deleted and created again. */
const MESSAGES = 30
const TRIES = 20
const CLEAR_ALL = '/api/monitoring/clear-all'
/** A deletion or a correction on an idle machine takes less. */
const MIDDLE_MS = 400

type Reply = { readonly status: number; readonly text: string } | null

/** Logs in and sends a request. @returns null without a reply */
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

/** Repeats a request until its status is one of these; no reply and 503 are retried. */
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

/** Causes the fault at a random time of a request. */
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
  await untilWell(installation)
}

/** Sends unique messages until they are acknowledged. */
async function send({ installation, random }: Scene, source: string): Promise<void> {
  const unique = Math.floor(random() * 1e9)
  const lines = Array.from({ length: MESSAGES }, (_, i) =>
    JSON.stringify({ source, severity: 'ERROR', message: `part ${i} of ${unique} of ${source}` }),
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

/** The counted messages of a source, after everything is written. */
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
      // The second request finds it deleted, or deletes it.
      await insist(scene, ['DELETE', path], [200, 404])
      const left = await countOf(scene, source)
      if (left > 0) problem(`${left} messages of a deleted source are counted`)
      await struckWhile(scene, ['POST', '/api/sources', { name: source }])
      await send(scene, source)
      await killAny(installation, scene.random)
      await untilWell(installation)
      const again = await countOf(scene, source)
      if (again !== MESSAGES)
        problem(`${again} of ${MESSAGES} messages are counted for a source that was made again`)
      // Rows of it that stay are counted as doubled.
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
