import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'

import type { DatabaseBackup, MakeBackup } from './clickhouse-backup.js'

/** One line of JSON each, from the service to the command. */
type Message =
  | { readonly kind: 'progress'; readonly text: string }
  | { readonly kind: 'result'; readonly value: DatabaseBackup }
  | { readonly kind: 'error'; readonly text: string }

/** The line that the command sends. */
const COMMAND = 'backup'
/** The longest path of a socket on Linux and macOS, less a few bytes. */
const MAX_PATH_BYTES = 100
const MAX_COMMAND_CHARS = 256

const socketFile = (dir: string): string => join(dir, 'control.sock')
/** This file holds the path of the socket where the data directory's own path is too long for one. */
const pointerFile = (dir: string): string => join(dir, 'control')

/**
 * Lets the backup command of this machine reach the service over a socket in the data directory, which only the
 * service's own user (and root) may open. It is not reachable over the network.
 */
export async function openControl(dataDir: string, makeBackup: MakeBackup): Promise<() => void> {
  const path = makePath(dataDir)
  rmSync(path, { force: true })
  const server = createServer((socket) => serve(socket, makeBackup))
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

function serve(socket: Socket, makeBackup: MakeBackup): void {
  const send = (message: Message): void => {
    if (!socket.destroyed) socket.write(`${JSON.stringify(message)}\n`)
  }
  socket.on('error', () => socket.destroy())
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
    if (text.length > MAX_COMMAND_CHARS) socket.destroy()
    if (!text.endsWith('\n')) return
    const command = text.trim()
    text = ''
    void run(command, makeBackup, (progress) => send({ kind: 'progress', text: progress }))
      .then((value) => send({ kind: 'result', value }))
      .catch((error: unknown) => send({ kind: 'error', text: textOf(error) }))
      .finally(() => socket.end())
  })
}

async function run(
  command: string,
  makeBackup: MakeBackup,
  report: (progress: string) => void,
): Promise<DatabaseBackup> {
  if (command === COMMAND) return await makeBackup(report)
  throw new Error('no such command')
}

/**
 * Has the service that runs on a data directory back up its database.
 *
 * @throws Error when no service runs there, or when the backup fails
 */
export async function requestBackup(
  dataDir: string,
  report: (progress: string) => void,
): Promise<DatabaseBackup> {
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
  socket.write(`${COMMAND}\n`)
  for await (const line of createInterface({ input: socket })) {
    const message = JSON.parse(line) as Message // `serve` writes it.
    if (message.kind === 'progress') report(message.text)
    if (message.kind === 'error') throw new Error(message.text)
    if (message.kind === 'result') return message.value
  }
  throw new Error('the service ended during the backup')
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
