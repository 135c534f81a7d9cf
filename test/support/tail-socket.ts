import { once } from 'node:events'
import { WebSocket } from 'ws'
import { eventually, type LiveService } from './live-service.js'

export interface TailRows {
  readonly type: string
  readonly id: string
  readonly from: string
  readonly to: string
  readonly matched: number
  readonly left_out: number
  readonly watermark: string
  // oxlint-disable-next-line typescript/no-explicit-any -- what a row holds is what is tested
  readonly rows: readonly any[]
}

export interface TailSocket {
  readonly socket: WebSocket
  /** The messages in order of arrival. */
  // oxlint-disable-next-line typescript/no-explicit-any -- what a message holds is what is tested
  readonly messages: any[]
  /** The texts that are no JSON. */
  readonly texts: string[]
  readonly send: (message: unknown) => void
  /** Subscribes and waits for the answer. @returns it */
  // oxlint-disable-next-line typescript/no-explicit-any -- what a message holds is what is tested
  readonly subscribe: (subscribe: object, resume?: string) => Promise<any>
  /** The messages with rows of a subscription. */
  readonly rowsOf: (id?: string) => readonly TailRows[]
  /** Waits until so many events of a subscription have matched. */
  readonly untilMatched: (count: number, id?: string) => Promise<readonly TailRows[]>
  readonly closed: () => { readonly code: number; readonly reason: string } | null
  readonly end: () => void
}

const matchedIn = (messages: readonly TailRows[]): number =>
  messages.reduce((sum, { matched }) => sum + matched, 0)

/** Opens `/ws/tail`; resolves when the connection is open or has failed. */
export async function openTail(
  service: Pick<LiveService, 'anyApi' | 'token'>,
  token = service.token,
  query = '',
): Promise<TailSocket> {
  const headers = token === '' ? {} : { authorization: `Bearer ${token}` }
  const socket = new WebSocket(`${service.anyApi().replace('http', 'ws')}/ws/tail${query}`, {
    headers,
  })
  const messages: unknown[] = []
  const texts: string[] = []
  let closed: { code: number; reason: string } | null = null
  socket.on('message', (data: Buffer) => {
    const text = data.toString('utf8')
    if (text.startsWith('{')) messages.push(JSON.parse(text))
    else texts.push(text)
  })
  socket.on('close', (code, reason) => (closed = { code, reason: String(reason) }))
  socket.on('error', () => undefined)
  await Promise.race([once(socket, 'open'), once(socket, 'close')])
  const send = (message: unknown): void =>
    socket.send(typeof message === 'string' ? message : JSON.stringify(message))
  const all = messages as TailSocket['messages']
  const rowsOf: TailSocket['rowsOf'] = (id = '') =>
    all.filter((message) => message.type === 'tail:rows' && message.id === id)
  return {
    socket,
    messages: all,
    texts,
    send,
    subscribe: async (subscribe, resume) => {
      const before = all.length
      const { id = '' } = subscribe as { readonly id?: string }
      send({ subscribe, ...(resume === undefined ? {} : { resume }) })
      const isAnswer = (message: { readonly type: string; readonly id: string }): boolean =>
        message.id === id && (message.type === 'tail:subscribed' || message.type === 'tail:error')
      const [answer] = await eventually(
        async () => all.slice(before).filter(isAnswer),
        (found) => found.length > 0,
      )
      return answer
    },
    rowsOf,
    untilMatched: (count, id) =>
      eventually(
        async () => rowsOf(id),
        (found) => matchedIn(found) >= count,
      ),
    closed: () => closed,
    end: () => socket.terminate(),
  }
}
