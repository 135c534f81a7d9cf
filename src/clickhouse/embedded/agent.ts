import { Agent, type ClientRequestArgs } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Engine } from './process.js'

type Sent = (error?: Error | null) => void

/**
 * Connects to the running engine, whatever its port. When an engine ends, any user of the machine
 * may listen on its port. A connection is therefore used only after the engine's own process has
 * confirmed, after it was established, that it still listens: until then nobody else could.
 */
export class EngineAgent extends Agent {
  readonly #running: () => Engine | null

  constructor(running: () => Engine | null, maxSockets: number) {
    super({ keepAlive: true, maxSockets })
    this.#running = running
  }

  override createConnection(
    _options: ClientRequestArgs,
    callback?: (error: Error | null, stream: Duplex) => void,
  ): Duplex | undefined {
    const engine = this.#running()
    if (engine !== null && engine.port !== null) return new EngineSocket(engine, engine.port)
    callback?.(refusal(), new Socket())
    return undefined
  }
}

/** Sends nothing before the engine has confirmed the connection. */
class EngineSocket extends Socket {
  #isConfirmed = false
  /** The first write, held until the connection is confirmed; the stream queues later ones. */
  #held: (() => void) | null = null

  constructor(engine: Engine, port: number) {
    super()
    this.setNoDelay(true)
    this.once('connect', () => void this.#confirm(engine))
    this.connect(port, '127.0.0.1')
  }

  async #confirm(engine: Engine): Promise<void> {
    const localPort = this.localPort ?? 0
    this.once('close', () => engine.forget(localPort))
    this.#isConfirmed = await engine.confirm(localPort)
    if (!this.#isConfirmed) this.destroy(refusal())
    this.#held?.()
  }

  override _write(chunk: unknown, encoding: BufferEncoding, callback: Sent): void {
    // oxlint-disable-next-line no-underscore-dangle -- the name of Node's stream
    this.#send(() => super._write(chunk, encoding, callback))
  }

  override _writev(
    chunks: { readonly chunk: unknown; readonly encoding: BufferEncoding }[],
    callback: Sent,
  ): void {
    // oxlint-disable-next-line no-underscore-dangle -- likewise
    this.#send(() => super._writev?.([...chunks], callback))
  }

  #send(write: () => void): void {
    if (this.#isConfirmed) write()
    else this.#held = write
  }
}

const refusal = (): Error =>
  Object.assign(new Error('the engine does not run'), { code: 'ECONNREFUSED' })
