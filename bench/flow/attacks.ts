import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { connect, type Socket } from 'node:net'
import { constants, setPriority } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { Connection } from '../lib/connection.js'

/*
 * Attacks on a service by somebody with an ingest key, a viewer's login, or neither. They run in a process of their own, so
 * that they delay no measurement by what they cost themselves.
 */

export interface Victim {
  readonly api: string
  readonly collector: string
  /** The address for datagrams. */
  readonly gelfPort: number
  /** The ingest key of the attacker. */
  readonly ingestKey: string
  /** The token of the attacker, a viewer. */
  readonly token: string
}

/** Sends one request of an attack. */
type Shot = (victim: Victim, n: number) => Promise<unknown>

interface Attack {
  readonly lanes: number
  /** The pause after each request of a lane. */
  readonly pauseMs: number
  /** Prepares the requests of the lane. */
  readonly prepare: () => Shot
}

const MIB = 1024 * 1024

/** Each request has a connection of its own, because many are answered by closing it. */
async function shoot(base: string, head: string, body: Uint8Array | null = null): Promise<void> {
  const connection = new Connection(base)
  await connection.request(head, body).catch(() => undefined)
  connection.close()
}

const ingest = ({ collector, ingestKey }: Victim, body: Uint8Array, coding = ''): Promise<void> =>
  shoot(
    collector,
    `POST /ingest HTTP/1.1\r\nX-Api-Key: ${ingestKey}\r\n${coding === '' ? '' : `Content-Encoding: ${coding}\r\n`}`,
    body,
  )

const ask = ({ api, token }: Victim, path: string): Promise<void> =>
  shoot(api, `GET ${path} HTTP/1.1\r\nAuthorization: Bearer ${token}\r\n`)

const word = (n: number): string => (n * 2654435761).toString(36)

const lines = (count: number, line: (i: number) => object): Buffer =>
  Buffer.from(Array.from({ length: count }, (_, i) => JSON.stringify(line(i))).join('\n'))

/** A Zstandard frame without content: magic, header, one empty last block (RFC 8878). */
const EMPTY_FRAME = Buffer.from('28b52ffd2000010000', 'hex')

/** The attacks by name. Each was seen to stop a service that has no limit against it. */
export const ATTACKS: Readonly<Record<string, Attack>> = {
  'lists of wrong values': {
    lanes: 4,
    pauseMs: 20,
    prepare: () => {
      const many = Array.from({ length: 1_700 }, () => 'x').join()
      return (victim) => ask(victim, `/api/logs?severity=${many}&priority=${many}&type=${many}`)
    },
  },
  'new sources': {
    lanes: 2,
    pauseMs: 1_000,
    prepare: () => (victim, n) =>
      ingest(
        victim,
        lines(50_000, (i) => ({ source: `s${word(n)}-${i}`, message: 'm' })),
      ),
  },
  'empty Zstandard frames': {
    lanes: 8,
    pauseMs: 1_000,
    prepare: () => {
      const body = Buffer.concat(
        Array.from({ length: Math.floor((16 * MIB) / 9) }, () => EMPTY_FRAME),
      )
      return (victim) => ingest(victim, body, 'zstd')
    },
  },
  'compressed lists of nothing': {
    lanes: 2,
    pauseMs: 250,
    prepare: () => {
      const body = gzipSync(`[${'{},'.repeat(5_500_000)}{}]`)
      return (victim) => ingest(victim, body, 'gzip')
    },
  },
  'long lines': {
    lanes: 2,
    pauseMs: 250,
    prepare: () => {
      const body = gzipSync(`{"source":"s","message":"${'a '.repeat(8 * MIB - 64)}"}`)
      return (victim) => ingest(victim, body, 'gzip')
    },
  },
  'many fields': {
    lanes: 2,
    pauseMs: 250,
    prepare: () => {
      const members = Array.from({ length: 800_000 }, (_, i) => `"k${i}":1`).join()
      const body = gzipSync(`{"source":"s","message":"m","tags":{${members}}}`)
      return (victim) => ingest(victim, body, 'gzip')
    },
  },
  'nested MessagePack': {
    lanes: 2,
    pauseMs: 250,
    prepare: () => {
      const body = Buffer.alloc(80_000, 0x92)
      return (victim) => ingest(victim, body)
    },
  },
  'wrong keys': {
    lanes: 8,
    pauseMs: 0,
    prepare: () => {
      const body = lines(2_000, () => ({ source: 's', message: 'm' }))
      return (victim, n) => ingest({ ...victim, ingestKey: `ik_${word(n)}` }, body)
    },
  },
  'searches of prefixes': {
    lanes: 24,
    pauseMs: 0,
    prepare: () => (victim, n) => ask(victim, `/api/logs?search=${word(n)[0]}*+${word(n + 1)[0]}*`),
  },
  'random messages': {
    lanes: 2,
    pauseMs: 100,
    prepare: () => (victim) =>
      ingest(
        victim,
        lines(2_000, (i) => ({
          source: `noise-${i % 40}`,
          message: randomBytes(40).toString('base64').replaceAll(/[+/=]/g, ' '),
        })),
      ),
  },
  'unsigned webhooks': {
    lanes: 4,
    pauseMs: 1_000,
    prepare: () => {
      const body = Buffer.alloc(25 * MIB, ' ')
      const head = `POST /webhooks/scm HTTP/1.1\r\nX-Scm-Token: ${'0'.repeat(64)}\r\n`
      return ({ collector }) => shoot(collector, head, body)
    },
  },
  connections: {
    lanes: 1,
    pauseMs: 100,
    prepare: () => {
      const sockets: Socket[] = []
      return async ({ api, collector }) => {
        for (const base of [api, collector])
          for (let i = 0; i < 500 && sockets.length < 12_000; i++) sockets.push(hold(new URL(base)))
        for (const socket of sockets)
          if (socket.writable && Math.random() < 0.02) socket.write(KEEP)
      }
    },
  },
  'wrong log-ins': {
    lanes: 4,
    pauseMs: 100,
    prepare:
      () =>
      ({ api }, n) =>
        shoot(
          api,
          'POST /api/auth/login HTTP/1.1\r\nContent-Type: application/json\r\n',
          Buffer.from(
            JSON.stringify({ email: `${word(n)}@example.com`, password: 'not this one' }),
          ),
        ),
  },
  datagrams: {
    lanes: 2,
    pauseMs: 0,
    prepare: () => {
      const socket = createSocket('udp4')
      const message = Buffer.from('{"version":"1.1","host":"noise","short_message":"one of many"}')
      const send = (port: number): Promise<unknown> =>
        new Promise((resolve) => socket.send(message, port, '127.0.0.1', resolve))
      return ({ gelfPort }) => Promise.all(Array.from({ length: 500 }, () => send(gelfPort)))
    },
  },
}

const KEEP = 'GET /health HTTP/1.1\r\nHost: x\r\n\r\n'

/** Opens a connection from another address of this machine. */
function hold({ hostname, port }: URL): Socket {
  const socket = connect({ host: hostname, port: Number(port), localAddress: '127.0.0.2' })
  socket.on('error', () => undefined)
  socket.on('data', () => undefined)
  return socket
}

/**
 * The attacker has the lowest CPU priority, because over a network it would use other cores; the
 * amount that it sends is measured.
 */
export const ATTACKER_PRIORITY = constants.priority.PRIORITY_LOW

interface RunningAttack {
  readonly pid: number | null
  /** The number of its requests that were answered. */
  shots(): number
  end(): void
}

/** Starts an attack in a process of its own. */
export function startAttack(name: string, victim: Victim): RunningAttack {
  const child = fork(fileURLToPath(import.meta.url), [name, JSON.stringify(victim)], {
    execArgv: [],
  })
  if (child.pid !== undefined) setPriority(child.pid, ATTACKER_PRIORITY)
  let shots = 0
  child.on('message', () => shots++)
  return {
    pid: child.pid ?? null,
    shots: () => shots,
    end: () => {
      child.kill('SIGKILL')
    },
  }
}

async function attack(name: string, victim: Victim): Promise<void> {
  const found = ATTACKS[name]
  if (found === undefined) throw new Error(`bug: no attack ${name}`)
  const { lanes, pauseMs, prepare } = found
  const shot = prepare()
  let n = 0
  const lane = async (): Promise<never> => {
    for (;;) {
      await shot(victim, ++n)
      process.send?.('shot')
      await sleep(pauseMs)
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}

const [, file, name, victim] = process.argv
if (file === fileURLToPath(import.meta.url) && name !== undefined && victim !== undefined) {
  process.on('disconnect', () => process.exit())
  await attack(name, JSON.parse(victim) as Victim) // what `startAttack` wrote
}
