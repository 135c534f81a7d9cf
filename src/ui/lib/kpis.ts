import { signal } from '@preact/signals'

import type { KpiSnapshot } from '../../model/kpi.js'
import { openSocket, type LastingSocket } from './socket.js'

/** The newest figures of the service, pushed as events are stored; null before the first. */
export const kpis = signal<KpiSnapshot | null>(null)

let socket: LastingSocket | null = null
let users = 0

interface Message {
  readonly type?: string
  readonly payload?: KpiSnapshot
}

/** Keeps the figures new until the returned function is called. */
export function followKpis(): () => void {
  users++
  socket ??= openSocket({
    path: '/ws/kpis',
    onMessage: (message) => {
      const { type, payload } = message as Message // the service's own channel
      if (type === 'kpi:snapshot' && payload !== undefined) kpis.value = payload
    },
  })
  return () => {
    users--
    if (users > 0) return
    socket?.close()
    socket = null
  }
}
