/** A WebSocket that reconnects by itself, and is closed while the page is hidden. */
export interface LastingSocket {
  send(message: string): void
  close(): void
}

export type SocketState = 'open' | 'lost' | 'hidden'

interface SocketOptions {
  readonly path: string
  readonly onOpen?: (send: (message: string) => void) => void
  readonly onMessage: (message: unknown) => void
  readonly onState?: (state: SocketState) => void
}

const FIRST_WAIT_MS = 500
const MOST_WAIT_MS = 15_000

/** Connects with the session's cookies. */
export function openSocket({ path, onOpen, onMessage, onState }: SocketOptions): LastingSocket {
  let socket: WebSocket | null = null
  let waitMs = FIRST_WAIT_MS
  let timer = 0
  let isOver = false
  const send = (message: string): void => {
    if (socket?.readyState === WebSocket.OPEN) socket.send(message)
  }
  const connect = (): void => {
    if (isOver || document.hidden || socket !== null) return
    const url = new URL(path, location.href)
    url.protocol = url.protocol.replace('http', 'ws')
    const own = new WebSocket(url)
    socket = own
    own.addEventListener('open', () => {
      waitMs = FIRST_WAIT_MS
      onState?.('open')
      onOpen?.(send)
    })
    own.addEventListener('message', ({ data }) => {
      if (data === 'ping') send('pong')
      else if (typeof data === 'string' && data !== 'pong') onMessage(JSON.parse(data))
    })
    own.addEventListener('close', () => {
      if (socket !== own) return
      socket = null
      if (isOver) return
      onState?.(document.hidden ? 'hidden' : 'lost')
      clearTimeout(timer)
      timer = window.setTimeout(connect, waitMs)
      waitMs = Math.min(waitMs * 2, MOST_WAIT_MS)
    })
  }
  const disconnect = (): void => {
    clearTimeout(timer)
    socket?.close()
    socket = null
  }
  const onVisibility = (): void => {
    if (document.hidden) {
      disconnect()
      onState?.('hidden')
    } else connect()
  }
  document.addEventListener('visibilitychange', onVisibility)
  connect()
  return {
    send,
    close: () => {
      isOver = true
      document.removeEventListener('visibilitychange', onVisibility)
      disconnect()
    },
  }
}
