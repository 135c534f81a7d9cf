/** An export and a live tail go on when the engine dies under them. */
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { eventually } from '../support/live-service.js'
import { enginePid, ingest, KNOWN, logIn, startService, tempDataDir } from '../support/service.js'
import { signal } from '../support/signals.js'
import { openTail } from '../support/tail-socket.js'

const service = await startService(t, { DATA_DIR: tempDataDir(t), ...KNOWN })
const caller = await logIn(service)

const killEngine = (): void => {
  signal(enginePid(service), 'SIGKILL')
}
const send = async (count: number, host: string, padding = ''): Promise<void> => {
  const lines = Array.from({ length: count }, (_, i) =>
    JSON.stringify({ source: 'shop', host, message: `${host} ${i}`, tags: { padding } }),
  )
  const reply = await ingest(service, lines.join('\n'))
  if (reply.status !== 202) throw new Error(await reply.text())
}
const countOf = async (host: string): Promise<number> => {
  const path = `/api/logs/histogram?q=host:${host}`
  return (await caller.get<{ readonly total: number }>(path)).total
}

t.test('an export is whole, with each event once, when the engine dies under it', async (t) => {
  const [batches, each] = [12, 500]
  for (let i = 0; i < batches; i++) await send(each, `wide${i}`, 'x'.repeat(10_000))
  await eventually(
    () => countOf('wide*'),
    (count) => count === batches * each,
  )
  const reply = await caller.call('GET', '/api/logs/export?source=shop&order=desc')
  t.equal(reply.status, 200)
  let text = ''
  let isKilled = false
  const decoder = new TextDecoder()
  for await (const piece of reply.body ?? []) {
    text += decoder.decode(piece, { stream: true })
    if (isKilled) continue
    isKilled = true
    killEngine()
    await sleep(500)
  }
  const lines = text.trimEnd().split('\n')
  t.same(JSON.parse(lines.at(-1) ?? ''), { complete: true, rows: batches * each })
  const ids = lines.slice(0, -1).map((line) => JSON.parse(line).id)
  t.equal(new Set(ids).size, batches * each)
  t.same(
    ids,
    ids.toSorted((a: number, b: number) => b - a),
  )
})

t.test('a tail misses nothing and repeats nothing when the engine dies under it', async (t) => {
  const tail = await openTail({ anyApi: () => service.api, token: caller.token })
  await eventually(
    () => tail.subscribe({ q: 'host:tailed', max: 500 }),
    ({ type }) => type === 'tail:subscribed',
  )
  await send(100, 'tailed')
  await tail.untilMatched(100)
  killEngine()
  await send(50, 'tailed', 'again')
  await sleep(300)
  await send(50, 'tailed', 'and again')
  const messages = await tail.untilMatched(200)
  const ids = messages.flatMap(({ rows }) => rows.map(({ id }) => id))
  t.equal(ids.length, 200)
  t.equal(new Set(ids).size, 200)
  t.equal(tail.closed(), null)
  tail.end()
})
