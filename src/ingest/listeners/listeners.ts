import type { Config } from '../../config.js'
import type { Instance } from '../../coordination/instance.js'
import type { Capacity } from '../../http/capacity.js'
import type { Log } from '../../telemetry/log.js'
import type { ProtocolFormat } from '../block.js'
import { createListeners, type ListenerBody } from '../listener.js'
import type { IngestServices } from '../protocols/ingest-route.js'
import type { SenderKey } from '../submission.js'
import { DelimitedFraming } from '../protocols/delimited.js'
import { GelfChunks } from '../protocols/gelf/chunks.js'
import { SyslogFraming, takeDatagram } from '../protocols/syslog/framing.js'
import type { Framing, RecordSink } from '../record-batch.js'
import { Intake, type Sender } from './intake.js'
import { createAllowed } from './allowed.js'
import { openCertificate, type Certificate } from './certificate.js'
import { GrpcServer } from './grpc.js'
import { ForwardSession } from './forward-session.js'
import { FramedSession, type Peer } from './session.js'
import { HeldBytes, openTcp, type ListenerHost, type TcpListener } from './tcp.js'
import { openUdp, type UdpListener } from './udp.js'

interface PortDeps extends Pick<Instance, 'config' | 'log'> {
  /** LISTENER_KEY, with whose rights the records of clients without a key are written; null when there is no such key. */
  readonly key: () => SenderKey | null
  readonly ingest: IngestServices
  readonly capacity: Capacity
}

export interface ListenerPorts {
  /** The ports that were opened, by setting. */
  readonly ports: ReadonlyMap<string, number>
  readonly connections: () => number
  /** The bytes that were read and are not durable yet. */
  readonly bytes: () => number
  /** The number of datagrams lost for lack of memory, by protocol. */
  readonly lostDatagrams: () => ReadonlyMap<string, number>
  /** Closes all connections. What was read becomes durable if the pipeline is in time for the deadline. */
  close(deadlineMs: number): Promise<void>
}

/** A protocol whose clients get no reply. */
interface FramedProtocol {
  readonly protocol: string
  readonly format: ProtocolFormat
  readonly framing: (maxBytes: number) => Framing
  /** Reads the datagrams of a port; absent for a protocol without UDP. */
  readonly datagrams?: () => (datagram: Buffer, from: string, sink: RecordSink) => void
}

interface FramedPort {
  readonly setting: string
  readonly port: (config: Config) => number | null
  readonly isTls?: true
  readonly of: FramedProtocol
}

const SYSLOG: FramedProtocol = {
  protocol: 'syslog',
  format: 'syslog/messages',
  framing: (maxBytes) => new SyslogFraming(maxBytes),
  datagrams: () => (datagram, _, sink) => takeDatagram(datagram, sink),
}

const NUL = 0
const LF = 10

const GELF: FramedProtocol = {
  protocol: 'gelf',
  format: 'gelf/batch',
  framing: (maxBytes) => new DelimitedFraming(NUL, maxBytes),
  datagrams: () => {
    const chunks = new GelfChunks()
    return (datagram, from, sink) => chunks.take(datagram, from, sink)
  },
}

const LINES: FramedProtocol = {
  protocol: 'lines',
  format: 'lines/batch',
  framing: (maxBytes) => new DelimitedFraming(LF, maxBytes),
}

const FRAMED_PORTS: readonly FramedPort[] = [
  { setting: 'SYSLOG_PORT', port: ({ syslogPort }) => syslogPort, of: SYSLOG },
  {
    setting: 'SYSLOG_TLS_PORT',
    port: ({ syslogTlsPort }) => syslogTlsPort,
    isTls: true,
    of: { protocol: SYSLOG.protocol, format: SYSLOG.format, framing: SYSLOG.framing },
  },
  { setting: 'GELF_PORT', port: ({ gelfPort }) => gelfPort, of: GELF },
  { setting: 'LINES_PORT', port: ({ linesPort }) => linesPort, of: LINES },
]

/** The most bytes of a message beside its text: its head, its structured data. */
const HEAD_BYTES = 16 * 1024
/** The most bytes of incomplete records of all connections. */
const HELD_BYTES = 64 * 1024 * 1024
const PORT_TRIES = 20

/**
 * Opens the ports of the settings, all but those of the collector's own server. Each connection has
 * a session, which splits its stream into records; the records of some milliseconds form a batch,
 * which the pipeline handles like a body. While too many bytes of a connection are not durable yet,
 * it is not read, which makes its sender wait.
 *
 * @throws Error naming the setting of a port that cannot be opened; the others are closed again
 */
export async function openListenerPorts(deps: PortDeps): Promise<ListenerPorts> {
  const { config, log, key, ingest, capacity } = deps
  const opened = new OpenPorts()
  if (config.role === 'api') return toListeners(opened, null)
  if (key() === null && config.listenerKey !== '')
    throw new Error(`LISTENER_KEY=${config.listenerKey} is the name or prefix of no ingest key`)
  const intake = new Intake({
    listeners: createListeners({ ...ingest, key }),
    onFull: (isFull) => opened.pause(isFull),
    onError: (error) => log.warn({ err: error }, 'the records of listeners wait'),
  })
  const host: ListenerHost = {
    host: config.host,
    log,
    isAllowed: createAllowed(config.listenerAllow, log),
    pools: [capacity.pool, { limit: capacity.perPort, open: 0 }],
    held: new HeldBytes(HELD_BYTES),
  }
  try {
    const certificate = needsCertificate(config) ? openCertificate(config, log) : null
    if (certificate !== null) opened.certificate = certificate
    const opening: Opening = { config, host, intake, opened, log, certificate }
    for (const port of FRAMED_PORTS) await openFramed(port, opening)
    await openForward(opening)
    await openGrpc(opening, ingest)
  } catch (error) {
    await opened.close()
    throw error
  }
  return toListeners(opened, intake)
}

interface Opening {
  readonly config: Config
  readonly host: ListenerHost
  readonly intake: Intake
  readonly opened: OpenPorts
  readonly log: Log
  /** Null when no port has TLS. */
  readonly certificate: Certificate | null
}

const needsCertificate = ({ tlsCertFile, syslogTlsPort, otlpGrpcPort }: Config): boolean =>
  tlsCertFile !== '' && (syslogTlsPort !== null || otlpGrpcPort !== null)

async function openFramed(
  { setting, port: portOf, isTls, of: { protocol, format, framing, datagrams } }: FramedPort,
  { config, host, intake, opened, log, certificate }: Opening,
): Promise<void> {
  const asked = portOf(config)
  if (asked === null) return
  const maxBytes = config.maxMessageBytes + HEAD_BYTES
  const submit = (bytes: Buffer, sender: Sender): void => {
    void pass({ protocol, format, bytes }, sender).catch((error: unknown) =>
      log.error({ err: error }, `records of ${setting} are lost`),
    )
  }
  const pass = async (body: ListenerBody, sender: Sender): Promise<void> => {
    const { refusal } = await intake.submit(body, sender)
    if (refusal !== null) log.error({ refusal }, `records of ${setting} were refused`)
  }
  const tls = isTls === true && certificate !== null ? { certificate } : {}
  const openSession = (peer: Peer) =>
    new FramedSession(framing(maxBytes), peer, (bytes) => submit(bytes, peer))
  const read = datagrams?.()
  for (let attempt = 1; ; attempt++) {
    const tcp = await openTcp(host, { setting, port: asked, ...tls, openSession })
    if (read === undefined) return opened.add(setting, protocol, { tcp, udp: null })
    try {
      const { port } = tcp
      const { host: address, isAllowed } = host
      const udp = await openUdp({
        setting,
        port,
        host: address,
        isAllowed,
        submit,
        read: (datagram, sender, batch) =>
          read(datagram, `${sender.address} ${sender.port}`, batch),
      })
      return opened.add(setting, protocol, { tcp, udp })
    } catch (error) {
      await tcp.stop()
      await tcp.close()
      // With port 0, the port that was free for TCP may not be free for UDP, so another one is tried.
      if (asked !== 0 || attempt === PORT_TRIES) throw error
    }
  }
}

async function openForward({ config, host, intake, opened, log }: Opening): Promise<void> {
  const { fluentPort: port, fluentSharedKey: sharedKey } = config
  const setting = 'FLUENT_PORT'
  if (port === null) return
  const submit = async (peer: Peer, bytes: Buffer, onceId?: string): Promise<void> => {
    const format = 'forward/messages'
    const once = onceId === undefined ? {} : { onceId }
    const { refusal } = await intake.submit({ protocol: 'forward', format, bytes, ...once }, peer)
    if (refusal !== null) log.error({ refusal }, `records of ${setting} were refused`)
  }
  const openSession = (peer: Peer) =>
    new ForwardSession({
      peer,
      sharedKey,
      submit: async (bytes, onceId) => await submit(peer, bytes, onceId),
    })
  // Clients that prove that they know the key may send from any address.
  const guarded = sharedKey === null ? host : { ...host, isAllowed: () => true }
  const tcp = await openTcp(guarded, { setting, port, openSession })
  opened.add(setting, 'forward', { tcp, udp: null })
}

async function openGrpc(
  { config, host, opened, log, certificate }: Opening,
  services: IngestServices,
): Promise<void> {
  const { otlpGrpcPort: port } = config
  const setting = 'OTLP_GRPC_PORT'
  if (port === null) return
  const server = new GrpcServer({ services, log, certificate })
  const openSession = (peer: Peer) => server.openSession(peer)
  // Every request names its key, so any address may send.
  const guarded = { ...host, isAllowed: () => true }
  const tcp = await openTcp(guarded, { setting, port, openSession })
  opened.add(setting, 'otlp', { tcp, udp: null, settle: (ms) => server.settle(ms) })
}

interface OpenPort {
  readonly tcp: TcpListener
  readonly udp: UdpListener | null
  /** Resolves when everything that was read has its reply. Protocols without replies do not have it. */
  readonly settle?: (deadlineMs: number) => Promise<void>
}

class OpenPorts {
  readonly #ports: (OpenPort & { readonly setting: string; readonly protocol: string })[] = []

  certificate: Certificate | null = null

  add(setting: string, protocol: string, port: OpenPort): void {
    this.#ports.push({ setting, protocol, ...port })
  }

  get all() {
    return this.#ports
  }

  pause(isPaused: boolean): void {
    for (const { tcp, udp } of this.#ports) {
      tcp.pause(isPaused)
      udp?.pause(isPaused)
    }
  }

  /** Stops reading; what was read is passed on. */
  async stop(): Promise<void> {
    await Promise.all(
      this.#ports.map(async ({ tcp, udp }) => {
        udp?.close()
        await tcp.stop()
      }),
    )
  }

  async settle(deadlineMs: number): Promise<void> {
    await Promise.all(this.#ports.map(async ({ settle }) => await settle?.(deadlineMs)))
  }

  async close(): Promise<void> {
    this.certificate?.close()
    await this.stop()
    await Promise.all(this.#ports.map(({ tcp }) => tcp.close()))
  }
}

function toListeners(opened: OpenPorts, intake: Intake | null): ListenerPorts {
  return {
    ports: new Map(opened.all.map(({ setting, tcp }) => [setting, tcp.port])),
    connections: () => opened.all.reduce((sum, { tcp }) => sum + tcp.connections, 0),
    bytes: () => intake?.bytes ?? 0,
    lostDatagrams: () =>
      new Map(
        opened.all.flatMap(({ protocol, udp }) =>
          udp === null ? [] : [[protocol, udp.lost()] as const],
        ),
      ),
    close: async (deadlineMs) => {
      await opened.stop()
      await Promise.all([intake?.settle(deadlineMs), opened.settle(deadlineMs)])
      await opened.close()
    },
  }
}
