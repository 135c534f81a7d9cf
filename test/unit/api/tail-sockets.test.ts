import t from 'tap'
import { WebSocket } from 'ws'
import { createTailSockets } from '../../../src/api/routes/tail.js'
import type { Tail, TailClient, TailRequest } from '../../../src/events/tail.js'
import { startServer } from '../../support/http.js'

interface Subscribed {
  readonly userId: string
  readonly id: string
  /** The iteration of the event loop. */
  readonly turn: number
}

type Test = Parameters<typeof startServer>[0]

/** The sockets of `/ws/tail`, with a tail that records the subscriptions. */
function start(t: Test) {
  const subscribed: Subscribed[] = []
  let turn = 0
  const count = (): void => {
    turn++
    next = setImmediate(count)
  }
  let next = setImmediate(count)
  t.teardown(async () => clearImmediate(next))
  const tail: Tail = {
    subscribe: ({ userId }: TailClient, { id }: TailRequest) =>
      void subscribed.push({ userId, id, turn }),
    unsubscribe: () => undefined,
    drained: () => undefined,
    closed: () => undefined,
    onStored: () => undefined,
    subscriptions: 0,
    questions: 0,
    close: () => undefined,
  }
  const hub = createTailSockets(
    {
      verify: (userId) => ({
        user: { userId, family: '', isToken: false, sources: null },
        expiresAtMs: Infinity,
      }),
      isAlive: () => Promise.resolve(true),
      consume: () => Promise.resolve(),
      mayUseCookies: () => false,
      mayUseQuery: true,
      maxOpen: 1000,
      maxOpenPerAddress: 1000,
    },
    {
      tail,
      context: {
        applications: { list: () => [] } as never,
        templateAliases: () => new Map(),
        redirects: () => new Map(),
      } as never,
      cursorKey: Buffer.alloc(32),
    },
  )
  const { port } = startServer(t, { webSockets: [hub.route] })
  const open = async (user: string): Promise<WebSocket> => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/ws/tail?token=${user}`)
    t.teardown(async () => socket.terminate())
    await new Promise((resolve) => socket.once('open', resolve))
    return socket
  }
  return { subscribed, open }
}

const SOCKETS = 20
const EACH = 40

t.test('a user who subscribes without a pause holds up neither the loop nor others', async (t) => {
  const { subscribed, open } = start(t)
  const mallory = await Promise.all(Array.from({ length: SOCKETS }, () => open('mallory')))
  const ann = await open('ann')
  const send = (socket: WebSocket, id: string): void =>
    socket.send(JSON.stringify({ subscribe: { id, q: 'one OR two' } }))
  for (let i = 0; i < EACH; i++) for (const socket of mallory) send(socket, String(i))
  for (let i = 0; i < 3; i++) send(ann, String(i))
  while (subscribed.length < SOCKETS * EACH + 3)
    await new Promise((resolve) => setTimeout(resolve, 5))
  const inTurn = new Map<number, number>()
  for (const { turn } of subscribed) inTurn.set(turn, (inTurn.get(turn) ?? 0) + 1)
  // One may be read where the loop reads sockets, another one where it goes on.
  t.ok(Math.max(...inTurn.values()) <= 2, 'an iteration of the loop reads no more')
  const places = subscribed.flatMap(({ userId }, i) => (userId === 'ann' ? [i] : []))
  t.ok((places[2] ?? Infinity) - (places[0] ?? 0) <= 6, 'users take turns')
  const idsOf = (user: string) =>
    subscribed.filter(({ userId }) => userId === user).map(({ id }) => id)
  t.same(idsOf('ann'), ['0', '1', '2'], 'in their order')
  t.equal(idsOf('mallory').length, SOCKETS * EACH, 'nothing is lost')
})
