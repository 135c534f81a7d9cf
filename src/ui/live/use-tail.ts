import { useEffect, useRef, useState } from 'preact/hooks'

import type { Fault } from '../lib/api.js'
import { openSocket, type SocketState } from '../lib/socket.js'
import { TailBuffer, type TailRows } from './tail-buffer.js'

type Message =
  | TailRows
  | { readonly type: 'tail:subscribed'; readonly watermark: string }
  | { readonly type: 'tail:error'; readonly error: Fault }

export interface Tail {
  readonly buffer: TailBuffer
  readonly fault: Fault | null
  readonly state: SocketState
  /** Redraws after the buffer was changed. */
  readonly redraw: () => void
}

const MOST_ROWS = 300

/** Follows the events of a query. After a lost connection or a hidden tab it resumes where it stopped. */
export function useTail(line: string): Tail {
  const buffer = useRef(new TailBuffer()).current
  const [, setTurn] = useState(0)
  const [fault, setFault] = useState<Fault | null>(null)
  const [state, setState] = useState<SocketState>('lost')
  const redraw = (): void => setTurn((n) => n + 1)
  useEffect(() => {
    let watermark: string | null = null
    let frame = 0
    buffer.clear()
    setFault(null)
    const onMessage = (message: unknown): void => {
      const told = message as Message // the service's own channel
      if (told.type === 'tail:error') setFault(told.error)
      else watermark = told.watermark
      if (told.type !== 'tail:rows') return
      buffer.push(told, Date.now())
      // Several messages between two frames are drawn once.
      cancelAnimationFrame(frame)
      frame = requestAnimationFrame(redraw)
    }
    const socket = openSocket({
      path: '/ws/tail',
      onState: setState,
      onMessage,
      onOpen: (send) => {
        const subscribe = { q: line, max: MOST_ROWS }
        send(JSON.stringify(watermark === null ? { subscribe } : { subscribe, resume: watermark }))
      },
    })
    // Redraws the falling rate when nothing arrives.
    const timer = setInterval(() => !document.hidden && redraw(), 1000)
    return () => {
      socket.close()
      clearInterval(timer)
      cancelAnimationFrame(frame)
    }
  }, [line])
  return { buffer, fault, state, redraw }
}
