import { once } from 'node:events'
import { WebSocket, type ClientOptions } from 'ws'
import { eventually, type LiveService } from './live-service.js'

export interface KpiSocket {
  readonly socket: WebSocket
  /** The messages in order of arrival. */
  readonly texts: string[]
  /** The payloads of the snapshots. */
  // oxlint-disable-next-line typescript/no-explicit-any -- what a snapshot holds is what is tested
  readonly snapshots: () => any[]
  /** The close code and reason; null while it is open. */
  readonly closed: () => { readonly code: number; readonly reason: string } | null
  /** Resolves with the close code. */
  readonly whenClosed: () => Promise<number>
  readonly end: () => void
}

interface SocketOptions extends ClientOptions {
  readonly protocols?: string | string[]
  readonly query?: string
  /** Connects to the first instance instead of the next one. */
  readonly atFirst?: boolean
}

/** Opens `/ws/kpis`; resolves when the connection is open or has failed. */
export async function openKpiSocket(
  service: LiveService,
  { protocols = [], query = '', atFirst = false, ...options }: SocketOptions = {},
): Promise<KpiSocket> {
  // The page of an instance opens the socket to that instance.
  const api = atFirst || options.origin === service.api ? service.api : service.anyApi()
  const url = `${api.replace('http', 'ws')}/ws/kpis${query}`
  const socket = new WebSocket(url, protocols, options)
  const texts: string[] = []
  let closed: { code: number; reason: string } | null = null
  socket.on('message', (data: Buffer) => texts.push(data.toString('utf8')))
  socket.on('close', (code, reason) => (closed = { code, reason: String(reason) }))
  socket.on('error', () => undefined)
  await Promise.race([once(socket, 'open'), once(socket, 'close')])
  return {
    socket,
    texts,
    snapshots: () =>
      texts.flatMap((text) => (text.startsWith('{') ? [JSON.parse(text).payload] : [])),
    closed: () => closed,
    whenClosed: async () => {
      const { code } = await eventually(
        async () => closed ?? { code: 0 },
        (found) => found.code !== 0,
      )
      return code
    },
    end: () => socket.terminate(),
  }
}

/** The current figures: the first snapshot of a socket includes all earlier writes. */
// oxlint-disable-next-line typescript/no-explicit-any -- what a snapshot holds is what is tested
export async function currentKpis(service: LiveService): Promise<any> {
  const socket = await openKpiSocket(service, {
    headers: { authorization: `Bearer ${service.token}` },
  })
  try {
    const [first] = await eventually(
      async () => socket.snapshots(),
      (snapshots) => snapshots.length > 0,
    )
    return first
  } finally {
    socket.end()
  }
}
