import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'

/** What a command of the operator asks of the running service. */
export interface ControlHandlers {
  /** @param tell says how far it is */
  readonly snapshot: (tell: (progress: string) => void) => Promise<unknown>
}

/** One line of JSON each: the command goes there, the others come back. */
type Message =
  | { readonly kind: 'progress'; readonly text: string }
  | { readonly kind: 'result'; readonly value: unknown }
  | { readonly kind: 'error'; readonly text: string }

/** A socket's path may be this long on Linux and macOS. */
const MAX_PATH_BYTES = 100
const COMMAND_BYTES = 256

const socketFile = (dir: string): string => join(dir, 'control.sock')
/** names the socket where the data directory's path is too long for one */
const pointerFile = (dir: string): string => join(dir, 'control')

/**
 * Lets commands of this machine reach the service: a socket in the data directory, which only the user may
 * open who runs the service (and root). Nothing of it is reachable over the network.
 */
export async function openControl(dataDir: string, handlers: ControlHandlers): Promise<() => void> {
  const path = makePath(dataDir)
  rmSync(path, { force: true })
  const server = createServer((socket) => serve(socket, handlers))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, resolve)
  })
  chmodSync(path, 0o600)
  return () => {
    server.close()
    rmSync(path, { force: true })
    rmSync(pointerFile(dataDir), { force: true })
    if (path !== socketFile(dataDir)) rmSync(dirname(path), { recursive: true, force: true })
  }
}

function makePath(dataDir: string): string {
  const near = socketFile(dataDir)
  rmSync(pointerFile(dataDir), { force: true })
  if (Buffer.byteLength(near) <= MAX_PATH_BYTES) return near
  const far = join(mkdtempSync(join(tmpdir(), 'log-engine-')), 's')
  writeFileSync(pointerFile(dataDir), far, { mode: 0o600 })
  return far
}

function serve(socket: Socket, handlers: ControlHandlers): void {
  const send = (message: Message): void => {
    if (!socket.destroyed) socket.write(`${JSON.stringify(message)}\n`)
  }
  socket.on('error', () => socket.destroy())
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
    if (text.length > COMMAND_BYTES) socket.destroy()
    if (!text.endsWith('\n')) return
    const command = text.trim()
    text = ''
    void run(command, handlers, (progress) => send({ kind: 'progress', text: progress }))
      .then((value) => send({ kind: 'result', value }))
      .catch((error: unknown) => send({ kind: 'error', text: textOf(error) }))
      .finally(() => socket.end())
  })
}

async function run(
  command: string,
  handlers: ControlHandlers,
  tell: (progress: string) => void,
): Promise<unknown> {
  if (command === 'snapshot') return await handlers.snapshot(tell)
  throw new Error('no such command')
}

/**
 * Sends a command to the service that runs on a data directory.
 *
 * @throws Error when none does, or with what it says
 */
export async function askRunning(
  dataDir: string,
  command: keyof ControlHandlers,
  tell: (progress: string) => void,
): Promise<unknown> {
  const pointer = pointerFile(dataDir)
  const path = existsSync(pointer) ? readFileSync(pointer, 'utf8') : socketFile(dataDir)
  const socket = connect(path)
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve)
    socket.once('error', () => {
      const help = 'start it, or copy the directory of a stopped one as it is'
      reject(new Error(`no service runs on ${dataDir}: ${help}`))
    })
  })
  socket.on('error', () => socket.destroy())
  socket.write(`${command}\n`)
  for await (const line of createInterface({ input: socket })) {
    const message = JSON.parse(line) as Message // written by `serve`
    if (message.kind === 'progress') tell(message.text)
    if (message.kind === 'error') throw new Error(message.text)
    if (message.kind === 'result') return message.value
  }
  throw new Error('the service ended meanwhile')
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
