import { setImmediate as nextTurn } from 'node:timers/promises'

import { Type, type Static } from '@sinclair/typebox'

import type { Connection } from '../../http/connection.js'
import type { WebSocketHub } from '../../http/websocket.js'
import { AppError } from '../../model/errors.js'
import { HOUR_MS } from '../../model/time.js'
import type { Tail, TailClient, TailRequest } from '../../events/tail.js'
import { errorMessage, type TailFault, type TailPosition } from '../../events/tail-messages.js'
import { MAX_LINE } from '../../query/parser.js'
import { ofSources } from '../../query/ast.js'
import { printQuery } from '../../query/printer.js'
import { decodeCursor, encodeCursor } from '../../records/cursor.js'
import type { EventContext } from '../event-context.js'
import { meaningOf, readTailLine } from '../event-question.js'
import { createFairSemaphore } from '../semaphore.js'
import { createUserSockets, type SocketUser, type UserSocketDeps } from '../user-sockets.js'
import { createValidator, throwOnErrors, type FieldError } from '../validation.js'

const Id = Type.String({ maxLength: 64 })
/** A watermark contains a number for each shard. */
const Watermark = Type.String({ maxLength: 2_048 })

const Subscribe = Type.Object({
  subscribe: Type.Object({
    id: Type.Optional(Id),
    q: Type.Optional(Type.String({ maxLength: MAX_LINE })),
    max: Type.Optional(Type.Integer({ minimum: 0, maximum: 500 })),
  }),
  resume: Type.Optional(Watermark),
})
const Unsubscribe = Type.Object({ unsubscribe: Id })

const DEFAULT_ROWS = 100
/** Every character of a query may take six bytes as JSON. */
const MESSAGE_BYTES = 16_384
/** A message has at most 256 Ki characters of rows, and is sent when nothing is buffered. */
const BUFFERED_BYTES = 4 * 1024 * 1024
/** The most messages of a user that wait to be read. */
const WAITING = 1_000
const PING_MS = 20_000
/** The idle timeout. A slow client answers a ping only after it has read what was sent before. */
const IDLE_S = 240

export interface TailSocketDeps {
  readonly tail: Tail
  readonly context: Pick<EventContext, 'applications' | 'templateAliases' | 'redirects'>
  readonly cursorKey: Buffer
}

/** Watermarks are signed, so that a client cannot request more than it missed. */
const WATERMARK = { list: 'tail' }

export const toWatermark = (key: Buffer, position: TailPosition): string =>
  encodeCursor(key, WATERMARK, position)

export function createTailSockets(
  deps: UserSocketDeps,
  { tail, context, cursorKey }: TailSocketDeps,
): WebSocketHub<SocketUser> {
  const clients = new WeakMap<Connection<SocketUser>, TailClient>()
  const clientOf = (connection: Connection<SocketUser>): TailClient => {
    const known = clients.get(connection)
    if (known !== undefined) return known
    const client = {
      userId: connection.user.userId,
      get bufferedBytes() {
        return connection.bufferedBytes
      },
      send: (text: string) => connection.send(text),
    }
    clients.set(connection, client)
    return client
  }
  const read = createReader(context, cursorKey)
  const inTurn = createTurns()
  const follow = (connection: Connection<SocketUser>, message: unknown): void => {
    const client = clientOf(connection)
    const wanted = read(message, connection.user.sources)
    if ('unsubscribe' in wanted) tail.unsubscribe(client, wanted.unsubscribe)
    else tail.subscribe(client, wanted)
  }
  const obey = async (connection: Connection<SocketUser>, message: unknown): Promise<void> => {
    try {
      await inTurn(connection.user.userId, () => {
        if (connection.isOpen) follow(connection, message)
      })
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      connection.send(errorMessage(idOf(message), toFault(error)))
    }
  }
  return createUserSockets(deps, {
    path: '/ws/tail',
    isLimited: true,
    limits: {
      messageBytes: MESSAGE_BYTES,
      backpressureBytes: BUFFERED_BYTES,
      keepsSlow: true,
      keepaliveMs: PING_MS,
      idleTimeoutS: IDLE_S,
    },
    async onOpen(connection) {
      const message = messageOfUrl(connection.query)
      if (message !== null) await obey(connection, message)
    },
    onMessage: (connection, text) => obey(connection, parseMessage(text)),
    onDrain: (connection) => tail.drained(clientOf(connection)),
    onClose: (connection) => tail.closed(clientOf(connection)),
  })
}

/**
 * Reading a query may take a millisecond. So each iteration of the event loop reads one, and users
 * take turns, however many connections they have.
 */
function createTurns(): (userId: string, work: () => void) => Promise<void> {
  const refusal = (): Error => new AppError('overloaded', 'too many messages of this user wait')
  const inTurn = createFairSemaphore({ atOnce: 1, perKey: 1, waitingPerKey: WAITING, refusal })
  return (userId, work) =>
    inTurn(userId, async () => {
      try {
        work()
      } finally {
        await nextTurn()
      }
    })
}

/** The subscription of `/ws/tail?q=…&max=…`; null for a URL without one. */
function messageOfUrl(query: URLSearchParams): unknown {
  const { token: _, resume, max, ...texts } = Object.fromEntries(query)
  const subscribe = { ...texts, ...(max === undefined ? {} : { max: Number(max) }) }
  if (resume === undefined && Object.keys(subscribe).length === 0) return null
  return { subscribe, ...(resume === undefined ? {} : { resume }) }
}

/** @returns undefined for a text that is not JSON */
function parseMessage(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The id in a message, even if the message is invalid otherwise. */
function idOf(message: unknown): string {
  const id: unknown = Object(Object(message).subscribe).id
  return typeof id === 'string' ? id.slice(0, 64) : ''
}

type Wanted = TailRequest | Static<typeof Unsubscribe>

/** @returns a function that throws AppError validation_error or invalid_cursor */
function createReader(
  context: TailSocketDeps['context'],
  cursorKey: Buffer,
): (message: unknown, sources: readonly string[] | null) => Wanted {
  const validator = createValidator()
  const checks = {
    subscribe: validator.json(Subscribe),
    unsubscribe: validator.json(Unsubscribe),
  }
  return (message, sources) => {
    if (typeof message !== 'object' || message === null)
      throw new AppError('validation_error', 'a message is JSON with subscribe or unsubscribe')
    const errors: FieldError[] = []
    const isEnd = 'unsubscribe' in message
    checks[isEnd ? 'unsubscribe' : 'subscribe'](message, errors)
    throwOnErrors(errors)
    // The checks above hold.
    if (isEnd) return message as Static<typeof Unsubscribe>
    const { subscribe, resume } = message as Static<typeof Subscribe>
    const position =
      resume === undefined ? null : decodeCursor(cursorKey, WATERMARK, resume, isPosition)
    const { q = '', id = '', max = DEFAULT_ROWS } = subscribe
    const isLong = position !== null && Date.now() - position.atMs > HOUR_MS
    const query = ofSources(readTailLine(q, isLong), sources)
    const meaning = meaningOf(query, context)
    return { id, key: printQuery(query), meaning, max, resume: position }
  }
}

const isPosition = (value: unknown): value is TailPosition =>
  typeof value === 'object' &&
  value !== null &&
  'atMs' in value &&
  Number.isSafeInteger(value.atMs) &&
  'blocks' in value &&
  Array.isArray(value.blocks)

/** The first fault of an error. */
function toFault({ code, message, details }: AppError): TailFault {
  const faults: unknown = details['errors']
  const [first] = Array.isArray(faults) ? (faults as (TailFault & { readonly in?: unknown })[]) : []
  if (first === undefined) return { code, message }
  const { in: _, ...fault } = first
  return { ...fault, code }
}
