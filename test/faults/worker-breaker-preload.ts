/**
 * Node loads this module before the service in every thread. On SIGUSR2 it breaks one thread as BREAK_WORKER_FILE
 * specifies. The service is unchanged.
 */
import { readFileSync } from 'node:fs'
import {
  BroadcastChannel,
  isMainThread,
  threadId,
  type Worker,
  workerData,
} from 'node:worker_threads'
import type { BreakOrder } from './worker-breaker.js'

const CHANNEL = 'break-worker'

type Message =
  | { readonly kind: 'hello'; readonly threadId: number; readonly thread: BreakOrder['thread'] }
  | { readonly kind: 'break'; readonly threadId: number; readonly way: 'exit' | 'throw' }

const channel = new BroadcastChannel(CHANNEL)
channel.unref()
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
const say = (message: Message): void => channel.postMessage(message)
const onMessage = (listener: (message: Message) => void): void => {
  const hear = (event: unknown): void => listener((event as { readonly data: Message }).data) // what `say` sent
  channel.addEventListener('message', hear)
}

if (isMainThread) obeyOrders()
else expectTheEnd()

function obeyOrders(): void {
  const workers = new Map<number, Worker>()
  const threads = new Map<number, BreakOrder['thread']>()
  process.on('worker', (worker) => {
    const id = worker.threadId
    workers.set(id, worker)
    worker.once('exit', () => workers.delete(id))
  })
  onMessage((message) => {
    if (message.kind === 'hello') threads.set(message.threadId, message.thread)
  })
  process.on('SIGUSR2', () => {
    const order = JSON.parse(
      readFileSync(process.env['BREAK_WORKER_FILE'] ?? '', 'utf8'),
    ) as BreakOrder // our own file
    const [id] = [...workers.keys()].filter((one) => threads.get(one) === order.thread)
    if (id === undefined) return
    if (order.way === 'terminate') void workers.get(id)?.terminate()
    else say({ kind: 'break', threadId: id, way: order.way })
  })
}

function expectTheEnd(): void {
  // Of the two kinds of threads only encoders have workerData.
  say({ kind: 'hello', threadId, thread: workerData === null ? 'owner' : 'encoder' })
  onMessage((message) => {
    if (message.kind !== 'break' || message.threadId !== threadId) return
    if (message.way === 'exit') process.exit(3)
    setImmediate(() => {
      throw new Error('broken on purpose')
    })
  })
}
