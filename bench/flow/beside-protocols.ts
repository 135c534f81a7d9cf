import { connect } from 'node:net'
import { once } from 'node:events'

import { freePort } from '../../test/support/ports.js'
import { Corpus } from '../data/corpus.js'
import { type BenchProtocol, protocolBlock } from '../data/protocol-bodies.js'
import type { BenchOptions } from '../lib/options.js'
import type { Check, Metric } from '../lib/report.js'
import { NEIGHBOUR, startVictoriaLogs, type VictoriaLogs } from '../lib/victorialogs.js'

type Options = BenchOptions & { readonly sources: number; readonly spanS: number }

/** The paths of VictoriaLogs for each protocol, with the content type; null for TCP. */
const PATHS: Readonly<Record<BenchProtocol, readonly [path: string, type: string] | null>> = {
  ndjson: [
    'jsonline?_stream_fields=source&_time_field=timestamp&_msg_field=message',
    'application/stream+json',
  ],
  otlp: ['opentelemetry/v1/logs', 'application/x-protobuf'],
  loki: ['loki/api/v1/push', 'application/x-protobuf'],
  es: [
    'elasticsearch/_bulk?_stream_fields=host&_time_field=@timestamp&_msg_field=message',
    'application/x-ndjson',
  ],
  syslog: null,
}

/** Sends the events of `runProtocols` to VictoriaLogs, for each protocol to a process of its own. */
export async function measureProtocols(
  program: string,
  options: Options,
  seed: number,
): Promise<{ readonly metrics: readonly Metric[]; readonly checks: readonly Check[] }> {
  const metrics: Metric[] = []
  const checks: Check[] = []
  for (const protocol of ['ndjson', ...options.protocols] as const) {
    const bodies = bodiesOf(protocol, options, seed)
    const syslogPort = await freePort()
    const neighbour = await startVictoriaLogs(program, syslogPort)
    try {
      await neighbour.settle()
      const before = neighbour.usage().cpuS
      await sendBodies(neighbour, {
        protocol,
        bodies,
        syslogPort,
        connections: options.connections,
      })
      await neighbour.settle()
      const cpuS = (neighbour.usage().cpuS - before) / (options.events / 1e6)
      const name = `${NEIGHBOUR}: ${protocol}: CPU`
      metrics.push({ name, unit: 'CPU s/M', samples: [cpuS], better: 'info' })
      const counted = await neighbour.count()
      const detail = `${counted} of ${options.events}`
      checks.push({
        name: `${NEIGHBOUR}: ${protocol}: all is stored`,
        ok: counted === options.events,
        detail,
      })
    } finally {
      await neighbour.stop()
    }
  }
  return { metrics, checks }
}

export function bodiesOf(
  protocol: BenchProtocol,
  {
    events,
    sources,
    spanS,
    bodyBytes,
    attributes,
  }: Pick<Options, 'events' | 'sources' | 'spanS' | 'bodyBytes' | 'attributes'>,
  seed: number,
): readonly Buffer[] {
  const spanMs = spanS * 1000
  const startMs = Date.now() - spanMs
  const corpus = new Corpus({ seed, events, startMs, spanMs, sources, attributes })
  const bodies: Buffer[] = []
  const next = () => protocolBlock(corpus, protocol, { maxBytes: bodyBytes, see: () => undefined })
  for (let block = next(); block !== null; block = next()) bodies.push(block.bytes)
  return bodies
}

interface Sending {
  readonly protocol: BenchProtocol
  readonly bodies: readonly Buffer[]
  readonly syslogPort: number
  readonly connections: number
}

/** Each connection sends the next body when the previous one is acknowledged; over TCP, when the kernel has taken it. */
export async function sendBodies(
  { url }: VictoriaLogs,
  { protocol, bodies, syslogPort, connections }: Sending,
): Promise<void> {
  const place = PATHS[protocol]
  let next = 0
  const lane = async (): Promise<void> => {
    const socket = place === null ? connect(syslogPort, '127.0.0.1') : null
    for (let body = bodies[next++]; body !== undefined; body = bodies[next++]) {
      if (socket !== null && !socket.write(body)) await once(socket, 'drain')
      if (place !== null) await post(`${url}/insert/${place[0]}`, place[1], body)
    }
    if (socket === null) return
    // VictoriaLogs closes the connection when it has read everything.
    socket.resume().end()
    await once(socket, 'close')
  }
  await Promise.all(Array.from({ length: connections }, lane))
}

async function post(url: string, type: string, body: Buffer): Promise<void> {
  const reply = await fetch(url, { method: 'POST', headers: { 'content-type': type }, body })
  await reply.arrayBuffer()
  if (!reply.ok) throw new Error(`${NEIGHBOUR} answered ${reply.status}`)
}
