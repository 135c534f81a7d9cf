import { computed, signal } from '@preact/signals'

import type { KpiSnapshot } from '../../model/kpi.js'
import { openSocket, type LastingSocket } from './socket.js'

/** The newest figures of the service, pushed as events are stored; null before the first. */
export const kpis = signal<KpiSnapshot | null>(null)

/** How many times in a row the connection was lost or could not be made. */
const losses = signal(0)

/** A connection that returns at once does not count as lost. */
export const areKpisLost = computed(() => losses.value > 1)

let socket: LastingSocket | null = null
let users = 0

interface Message {
  readonly type?: string
  readonly payload?: KpiSnapshot
}

/** Keeps the figures up to date until the returned function is called. */
export function followKpis(): () => void {
  users++
  socket ??= connect()
  return () => {
    users--
    if (users > 0) return
    socket?.close()
    socket = null
  }
}

function connect(): LastingSocket {
  return openSocket({
    path: '/ws/kpis',
    onMessage: (message) => {
      const { type, payload } = message as Message // the service's own channel
      if (type === 'kpi:snapshot' && payload !== undefined) kpis.value = payload
    },
    onState: (state) => {
      losses.value = state === 'lost' ? losses.value + 1 : 0
    },
  })
}

/** Connects at once instead of waiting for the next attempt. */
export function retryKpis(): void {
  if (socket === null) return
  socket.close()
  socket = connect()
}
