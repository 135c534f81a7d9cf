import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { RequestOutcome } from '../../../src/telemetry/metrics.js'
import { httpRoute } from '../../../src/http/routes.js'
import { AppError } from '../../../src/model/errors.js'
import { startServer } from '../../support/http.js'

const CHUNK = 100_000
const GET = 'GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n'

/** A server whose reply has so many chunks, and what became of its source. */
function streaming(
  t: Parameters<typeof startServer>[0],
  chunks: number,
  { failsAt = Infinity, stallTimeoutMs = 30_000 } = {},
) {
  const source = { made: 0, isOver: false, isAborted: false }
  const outcomes: RequestOutcome[] = []
  const route = httpRoute({
    id: 'stream',
    method: 'GET',
    path: '/stream',
    bodyBytes: 0,
    handle({ signal }) {
      signal.addEventListener('abort', () => (source.isAborted = true))
      async function* bytes(): AsyncGenerator<Uint8Array> {
        try {
          for (let i = 0; i < chunks; i++) {
            if (i === failsAt) throw new Error('the source broke')
            source.made++
            yield Buffer.alloc(CHUNK, 97 + (i % 26))
          }
        } finally {
          source.isOver = true
        }
      }
      return { status: 200, headers: { 'Content-Type': 'text/plain' }, stream: bytes() }
    },
  })
  const running = startServer(t, {
    routes: [route],
    limits: { stallTimeoutMs },
    observe: (outcome) => outcomes.push(outcome),
  })
  return { ...running, source, outcomes }
}

const until = async (isTrue: () => boolean): Promise<void> => {
  for (let i = 0; i < 200 && !isTrue(); i++) await sleep(50)
}

t.test('a stream arrives whole, and the connection serves the next request', async (t) => {
  const { url, source, outcomes } = streaming(t, 300)
  for (let round = 1; round <= 2; round++) {
    const reply = await fetch(`${url}/stream`)
    t.match(reply.headers.get('content-type'), 'text/plain')
    const text = await reply.text()
    t.equal(text.length, 300 * CHUNK)
    t.equal(text.at(-1), String.fromCodePoint(97 + (299 % 26)))
  }
  await until(() => outcomes.length === 2)
  t.match(outcomes, [{ status: 200 }, { status: 200 }])
  t.equal(source.isOver, true)
  const empty = await fetch(`${streaming(t, 0).url}/stream`)
  t.same([empty.status, await empty.text()], [200, ''])
})

t.test('the source waits for a slow client, and a stalled one is disconnected', async (t) => {
  const { url, port, source, outcomes } = streaming(t, 1_000, { stallTimeoutMs: 2_000 })
  const slow = await fetch(`${url}/stream`)
  let bytes = 0
  for await (const piece of slow.body ?? []) {
    if (bytes < 1_000_000) await sleep(20)
    bytes += piece.byteLength
  }
  t.equal(bytes, 1_000 * CHUNK)
  source.made = 0
  source.isOver = false
  const socket = connect(port, '127.0.0.1')
  socket.write(GET)
  await once(socket, 'readable')
  await until(() => outcomes.length === 2)
  t.match(outcomes[1], { routeId: 'stream', status: 0 })
  t.ok(source.made < 500, `${source.made} chunks were made for nobody`)
  await until(() => source.isOver)
  t.equal(source.isOver, true)
  t.equal(source.isAborted, true)
  socket.destroy()
})

t.test('a client that hangs up ends the source', async (t) => {
  const { port, source } = streaming(t, 10_000)
  const socket = connect(port, '127.0.0.1')
  socket.write(GET)
  await once(socket, 'readable')
  socket.destroy()
  await until(() => source.isOver)
  t.same([source.isOver, source.isAborted], [true, true])
  t.ok(source.made < 1_000)
})

t.test('a client that hangs up while the source waits is no fault', async (t) => {
  let isOver = false
  const waiting = httpRoute({
    id: 'waiting',
    method: 'GET',
    path: '/stream',
    bodyBytes: 0,
    handle({ signal }) {
      async function* bytes(): AsyncGenerator<Uint8Array> {
        try {
          yield Buffer.from('first')
          await sleep(60_000, undefined, { signal, ref: false })
        } finally {
          isOver = true
        }
      }
      return { status: 200, headers: { 'Content-Type': 'text/plain' }, stream: bytes() }
    },
  })
  const { port, log } = startServer(t, { routes: [waiting] })
  const socket = connect(port, '127.0.0.1')
  socket.write(GET)
  await once(socket, 'readable')
  socket.destroy()
  await until(() => isOver)
  await sleep(50)
  t.equal(isOver, true)
  t.same(log.entries, [])
})

t.test('a source that fails breaks the reply off, so that the client knows', async (t) => {
  const { url, source, outcomes } = streaming(t, 100, { failsAt: 50 })
  const reply = await fetch(`${url}/stream`)
  t.equal(reply.status, 200)
  await t.rejects(reply.text())
  await until(() => source.isOver && outcomes.length === 1)
  t.match(outcomes, [{ status: 0 }])
})

t.test('HEAD has no body, and ends the source', async (t) => {
  const { url, outcomes } = streaming(t, 10)
  const reply = await fetch(`${url}/stream`, { method: 'HEAD' })
  t.same([reply.status, await reply.text()], [200, ''])
  t.match(outcomes, [{ status: 200 }])
})

/** A server that takes a body as it comes, a chunk every `delayMs`. */
function taking(t: Parameters<typeof startServer>[0], delayMs: number, failsAt = Infinity) {
  const taken = { bytes: 0, error: null as unknown }
  const outcomes: RequestOutcome[] = []
  const running = startServer(t, {
    routes: [
      {
        id: 'take',
        method: 'POST',
        path: '/take',
        bodyBytes: 1000,
        isStreamed: () => true,
        admit: () => ({
          kind: 'streamed',
          handle: async (_, body) => {
            try {
              for await (const chunk of body) {
                taken.bytes += chunk.length
                body.keep(0)
                if (taken.bytes > failsAt) throw new AppError('overloaded', 'no more')
                await sleep(delayMs)
              }
            } catch (error) {
              taken.error = error
              throw error
            }
            return { status: 200, json: { bytes: taken.bytes } }
          },
        }),
      },
    ],
    // A body that waited in memory as a whole would exceed it. uWebSockets.js reads on what the kernel holds after a pause.
    limits: { maxBodyBytesInFlight: 40_000_000, bodyTimeoutMs: 3000 },
    observe: (outcome) => outcomes.push(outcome),
  })
  return { ...running, taken, outcomes }
}

async function* chunksOf(bytes: number): AsyncGenerator<Uint8Array> {
  for (let sent = 0; sent < bytes; sent += CHUNK) yield Buffer.alloc(CHUNK, 'b')
}

const post = (url: string, bytes: number): Promise<Response> =>
  fetch(`${url}/take`, {
    method: 'POST',
    body: ReadableStream.from(chunksOf(bytes)),
    duplex: 'half',
  })

t.test('a body of any length is taken as it comes, and its client waits', async (t) => {
  const { url, outcomes } = taking(t, 1)
  for (const bytes of [1000 * CHUNK, CHUNK]) {
    const reply = await post(url, bytes)
    t.equal(reply.status, 200)
    await reply.text()
  }
  t.equal((await fetch(`${url}/take`, { method: 'POST' })).status, 200, 'also an empty one')
  await until(() => outcomes.length === 3)
  t.match(outcomes, [{ status: 200 }, { status: 200 }, { status: 200 }])
})

t.test('a body that is refused on the way ends the connection', async (t) => {
  const { url, taken } = taking(t, 0, 5 * CHUNK)
  const status = await post(url, 300 * CHUNK).then(
    (reply) => reply.status,
    () => 429,
  )
  t.equal(status, 429)
  t.ok(taken.bytes < 100 * CHUNK, 'the rest is not read')
  t.equal((await fetch(`${url}/take`, { method: 'POST' })).status, 200, 'the server goes on')
})

t.test('the reader of a body learns that its client has left, or sends nothing more', async (t) => {
  const { port, taken, outcomes } = taking(t, 0)
  const begin = 'POST /take HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nbegin'
  const leaving = connect(port, '127.0.0.1')
  leaving.write(begin)
  await until(() => taken.bytes === 5)
  leaving.destroy()
  await until(() => taken.error !== null)
  t.match(taken.error, { code: 'bad_request' })
  const silent = connect(port, '127.0.0.1')
  silent.write(begin)
  const [reply] = (await once(silent, 'data')) as [Buffer]
  t.match(reply.toString(), /^HTTP\/1.1 408 /)
  await until(() => outcomes.length === 2)
  t.match(outcomes, [{ status: 0 }, { status: 408 }])
})

t.test('a body in chunks of a few bytes is refused, one of short lines is taken', async (t) => {
  const { port, taken } = taking(t, 0)
  const head = 'POST /take HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n'
  const send = async (chunks: string): Promise<string> => {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined)
    let text = ''
    socket.on('data', (bytes) => (text += bytes.toString('latin1')))
    socket.write(`${head}${chunks}`)
    await until(() => text.includes('\r\n\r\n'))
    socket.destroy()
    return text.slice(9, 12)
  }
  t.equal(await send('1\r\na\r\n'.repeat(200_000)), '400')
  taken.bytes = 0
  t.equal(await send(`${`10\r\n${'a'.repeat(16)}\r\n`.repeat(5000)}0\r\n\r\n`), '200')
  t.equal(taken.bytes, 80_000)
})
