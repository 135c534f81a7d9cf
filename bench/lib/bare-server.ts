import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** A server that only replies, in a process of its own. */
export interface BareServer {
  readonly url: string
  readonly pid: number
  /** Sends a text to all of its WebSockets. */
  publish(text: string): void
  close(): void
}

export async function startBareServer(): Promise<BareServer> {
  const script = new URL('../flow/bare-server.js', import.meta.url)
  const child = fork(fileURLToPath(script), { execArgv: [] })
  const port = await new Promise<number>((resolve, reject) => {
    child.once('message', (message) => resolve(Number(message)))
    child.once('exit', (code) => reject(new Error(`the bare server ended (${code})`)))
  })
  return {
    url: `http://127.0.0.1:${port}`,
    pid: child.pid ?? 0,
    publish: (text) => {
      child.send(text)
    },
    close: () => {
      if (child.connected) child.disconnect()
    },
  }
}
