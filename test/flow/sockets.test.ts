/**
 * Many WebSockets on one service, most of them idle. `SOCKETS=10500` is the full figure; the process
 * that tests needs an open-file limit above it.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { SocketReader } from '../../bench/lib/socket-reader.js'
import { KNOWN, ingest, logIn, startService, tempDataDir } from '../support/service.js'
import { eventually } from '../support/live-service.js'
import { MINUTE_MS } from '../../src/model/time.js'

const SOCKETS = Number(process.env['SOCKETS'] ?? 1_500)
/** One of this many sockets sends pings. */
const isActive = (i: number): boolean => i % 20 === 0
const PINGS = 5
/** Concurrent upgrades. */
const OPENING = 100
/** Far more than needed, and far less than a leak or a buffer per socket would take. */
const SOCKET_BYTES = 40_000

const service = await startService(t, {
  DATA_DIR: tempDataDir(t),
  ...KNOWN,
  WS_MAX_OPEN: '100000',
  WS_LIMITER: '1000000/60',
  INSIGHTS_INTERVAL_SECONDS: '0',
})
const caller = await logIn(service)

interface Peer {
  readonly reader: SocketReader
  readonly seen: { snapshots: number; occurrences: number; pongs: number }
}

async function openOne(): Promise<Peer> {
  const seen = { snapshots: 0, occurrences: -1, pongs: 0 }
  const onText = (text: string): void => {
    if (text === 'pong') seen.pongs++
    if (!text.startsWith('{')) return
    seen.snapshots++
    seen.occurrences = Number(/"total_occurrences":(\d+)/.exec(text)?.[1])
  }
  const options = { url: new URL('/ws/kpis', service.api), token: caller.token, onText }
  return await new Promise((resolve, reject) => {
    const reader = new SocketReader(options, (error) =>
      error === null ? resolve({ reader, seen }) : reject(error),
    )
  })
}

async function openAll(): Promise<Peer[]> {
  const peers: Peer[] = []
  while (peers.length < SOCKETS) {
    const few = Math.min(OPENING, SOCKETS - peers.length)
    peers.push(...(await Promise.all(Array.from({ length: few }, openOne))))
  }
  return peers
}

async function openSockets(): Promise<number> {
  const reply = await caller.call('GET', '/metrics')
  return Number(/^log_engine_websockets (\d+)$/m.exec(await reply.text())?.[1])
}

/** Null where the system does not report it. */
function residentBytes(): number | null {
  try {
    const status = readFileSync(`/proc/${service.pid}/status`, 'utf8')
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024
  } catch {
    return null
  }
}

const countWith = (peers: readonly Peer[], satisfies: (seen: Peer['seen']) => boolean) =>
  eventually(
    async () => peers.filter(({ seen }) => satisfies(seen)).length,
    (count) => count === peers.length,
    MINUTE_MS,
  )

t.test(`${SOCKETS} WebSockets, most of them idle`, { timeout: 600_000 }, async (t) => {
  const resident: number[] = []
  for (let round = 0; round < 3; round++) {
    const before = residentBytes()
    const peers = await openAll()
    t.equal(await countWith(peers, (seen) => seen.snapshots > 0), SOCKETS, 'each is greeted')
    t.equal(await openSockets(), SOCKETS)
    const after = residentBytes()
    if (before !== null && after !== null) {
      t.comment(`${Math.round((after - before) / SOCKETS)} bytes of memory a socket`)
      t.ok(after - before < SOCKETS * SOCKET_BYTES + 50_000_000)
      resident.push(after)
    }

    const active = peers.filter((_, i) => isActive(i))
    const talking = (async () => {
      for (let i = 0; i < PINGS; i++) {
        for (const { reader } of active) reader.send('ping')
        await sleep(50)
      }
    })()
    const sent = await ingest(service, `{"source":"many","message":"round ${round}"}`)
    t.equal(sent.status, 202)
    await talking
    t.equal(
      await countWith(peers, (seen) => seen.occurrences >= round + 1),
      SOCKETS,
      'an event reaches each of them',
    )
    t.equal(await countWith(active, (seen) => seen.pongs === PINGS), active.length)
    t.equal((await caller.call('GET', '/api/kpis')).status, 200, 'requests are answered beside')

    for (const { reader } of peers) reader.close()
    t.equal(await eventually(openSockets, (open) => open === 0), 0, 'all are forgotten')
  }
  const [first, , last] = resident
  if (first !== undefined && last !== undefined)
    t.ok(last < first * 1.3 + 30_000_000, `${resident.join(', ')} bytes: no round keeps memory`)
})
