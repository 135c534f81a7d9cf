import { setTimeout as sleep } from 'node:timers/promises'
import { test, type Test } from 'tap'
import type { KpiCache } from '../../../src/events/kpi-cache.js'
import { createKpiPush, type KpiPush } from '../../../src/events/kpi-push.js'
import { createInProcessState } from '../../../src/coordination/memory-state.js'

const unexpected = (error: unknown): never => {
  throw error
}

const INTERVAL_MS = 40

/** A cache whose snapshot is the number of what was written, and clients that note what they get. */
async function setUp(t: Test, clients = 1) {
  const state = createInProcessState({ onError: unexpected })
  const figures = { written: 0, computed: 0, failure: null as Error | null }
  const current = async (): Promise<string> => {
    figures.computed++
    const { written } = figures
    await sleep(1)
    if (figures.failure !== null) throw figures.failure
    return `{"n":${written}}`
  }
  const cache: KpiCache = {
    get: current,
    current,
    noteWritten: async () => undefined,
    invalidate: async () => undefined,
  }
  const sent: { readonly text: string; readonly atMs: number }[] = []
  const errors: unknown[] = []
  const sockets = {
    size: clients,
    publish: (text: string): void => {
      sent.push({ text, atMs: performance.now() })
    },
  }
  let greet = async (_client: { send(text: string): unknown }): Promise<void> => {}
  const make = (): Promise<KpiPush> =>
    createKpiPush({
      cache,
      openSockets: (greetClient) => {
        greet = greetClient
        return sockets
      },
      signals: state,
      intervalMs: INTERVAL_MS,
      onError: (error) => errors.push(error),
    })
  const push = await make()
  t.teardown(async () => {
    push.close()
    await state.close()
  })
  // The signal of the available state.
  await until(() => clients === 0 || sent.length === 1)
  return { push, make, greet, figures, sent, errors, sockets }
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await sleep(2)
}

const message = (n: number): string => `{"type":"kpi:snapshot","payload":{"n":${n}}}`

void test('a written batch reaches the clients', async (t) => {
  const { push, figures, sent } = await setUp(t)
  figures.written = 1
  push.onWritten()
  await until(() => sent.length === 2)
  t.equal(sent.at(-1)?.text, message(1))
})

void test('many batches are one snapshot an interval, the last with everything', async (t) => {
  const { push, figures, sent } = await setUp(t)
  const from = sent.length
  for (let i = 1; i <= 60; i++) {
    figures.written = i
    push.onWritten()
    await sleep(3)
  }
  await until(() => sent.at(-1)?.text === message(60))
  const times = sent.slice(from).map(({ atMs }) => atMs)
  const spanMs = (times.at(-1) ?? 0) - (times[0] ?? 0)
  t.ok(times.length - 1 <= spanMs / INTERVAL_MS + 1, `${times.length} in ${spanMs} ms`)
})

void test('nothing is sent when nothing changed', async (t) => {
  const { push, figures, sent } = await setUp(t)
  const { computed } = figures
  push.onWritten()
  await until(() => figures.computed > computed)
  await sleep(INTERVAL_MS * 2)
  t.equal(sent.length, 1)
})

void test('nothing is computed while nobody listens, and a new client gets it all', async (t) => {
  const { push, greet, figures, sent, sockets } = await setUp(t, 0)
  figures.written = 5
  push.onWritten()
  await push.onChanged()
  await sleep(INTERVAL_MS * 2)
  t.equal(figures.computed, 0)
  sockets.size = 1
  const texts: string[] = []
  await greet({ send: (text) => texts.push(text) })
  t.same(texts, [message(5)])
  await sleep(INTERVAL_MS * 2)
  t.same(sent, [], 'what it has is not sent again')
})

void test('the first client gets earlier changes once, though another one connects', async (t) => {
  const { push, greet, figures, sent, sockets } = await setUp(t, 0)
  figures.written = 5
  push.onWritten()
  await push.onChanged()
  await sleep(INTERVAL_MS)
  const texts: string[] = []
  const greetClient = () => greet({ send: (text) => texts.push(text) })
  sockets.size = 1
  const first = greetClient()
  sockets.size = 2
  await Promise.all([first, greetClient()])
  t.same(texts, [message(5), message(5)])
  await sleep(INTERVAL_MS * 2)
  t.same(sent, [], 'nothing changed since')
})

void test('other instances hear of a batch', async (t) => {
  const { push, make, figures, sent } = await setUp(t)
  const other = await make()
  t.teardown(() => other.close())
  await sleep(INTERVAL_MS * 2)
  const from = sent.length
  figures.written = 8
  push.onWritten()
  await until(() => sent.length >= from + 2)
  t.same(
    sent.slice(from).map(({ text }) => text),
    [message(8), message(8)],
    'both have sent it to theirs',
  )
})

void test('a failure is reported, and the snapshot is sent when it can be computed', async (t) => {
  const { push, figures, sent, errors } = await setUp(t)
  figures.failure = new Error('the store is away')
  figures.written = 2
  push.onWritten()
  await until(() => errors.length > 0)
  t.equal(sent.length, 1)
  figures.failure = null
  await until(() => sent.length === 2)
  t.equal(sent.at(-1)?.text, message(2))
})

void test('a closed push sends nothing', async (t) => {
  const { push, figures, sent } = await setUp(t)
  push.close()
  figures.written = 3
  push.onWritten()
  await sleep(INTERVAL_MS * 2)
  t.equal(sent.length, 1)
})
