import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'

import type { AuditReport } from '../records/audit-chain.js'
import type { DatabaseBackup, MakeBackup } from './clickhouse-backup.js'

/** Resets of an account by the operator of the machine. */
export interface AccountResets {
  readonly resetPassword: (email: string) => Promise<PasswordReset>
  /** @returns the e-mail as it is stored */
  readonly resetSecondFactor: (email: string) => Promise<string>
}

/** The commands that the running service executes for the operator of its machine. */
export interface Control extends AccountResets {
  readonly backup: MakeBackup
  readonly verifyAudit: () => Promise<AuditReport>
}

export interface PasswordReset {
  readonly email: string
  readonly password: string
  readonly isActive: boolean
}

/** One line of JSON, from the command to the service. */
type Request =
  | { readonly kind: 'backup'; readonly isOnS3: boolean }
  | { readonly kind: 'reset-password'; readonly email: string }
  | { readonly kind: 'reset-second-factor'; readonly email: string }
  | { readonly kind: 'verify-audit' }

/** What the service gives for each request. */
interface Results {
  readonly backup: DatabaseBackup
  readonly 'reset-password': PasswordReset
  /** The e-mail as it is stored. */
  readonly 'reset-second-factor': string
  readonly 'verify-audit': AuditReport
}

/** One line of JSON each, from the service to the command. */
type Message<Result> =
  | { readonly kind: 'progress'; readonly text: string }
  | { readonly kind: 'result'; readonly value: Result }
  | { readonly kind: 'error'; readonly text: string }

/** The longest path of a socket on Linux and macOS, less a few bytes. */
const MAX_PATH_BYTES = 100
const MAX_REQUEST_CHARS = 1_024

const socketFile = (dir: string): string => join(dir, 'control.sock')
/** Holds the path of the socket when the path of the data directory is too long for a socket. */
const pointerFile = (dir: string): string => join(dir, 'control')

/**
 * Lets commands of this machine reach the service over a socket in the data directory, which only the service's own
 * user (and root) may open. It is not reachable over the network.
 */
export async function openControl(dataDir: string, control: Control): Promise<() => void> {
  const path = makePath(dataDir)
  rmSync(path, { force: true })
  const server = createServer((socket) => serve(socket, control))
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

function serve(socket: Socket, control: Control): void {
  const send = (message: Message<Results[Request['kind']]>): void => {
    if (!socket.destroyed) socket.write(`${JSON.stringify(message)}\n`)
  }
  socket.on('error', () => socket.destroy())
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
    if (text.length > MAX_REQUEST_CHARS) socket.destroy()
    if (!text.endsWith('\n')) return
    const request = text
    text = ''
    void run(request, control, (progress) => send({ kind: 'progress', text: progress }))
      .then((value) => send({ kind: 'result', value }))
      .catch((error: unknown) => send({ kind: 'error', text: textOf(error) }))
      .finally(() => socket.end())
  })
}

async function run(
  text: string,
  control: Control,
  report: (progress: string) => void,
): Promise<Results[Request['kind']]> {
  const request = JSON.parse(text) as Request // `ask` of this program writes it.
  switch (request.kind) {
    case 'backup':
      return await control.backup(request.isOnS3, report)
    case 'reset-password':
      return await control.resetPassword(request.email)
    case 'reset-second-factor':
      return await control.resetSecondFactor(request.email)
    case 'verify-audit':
      return await control.verifyAudit()
  }
}

/**
 * Makes the service that runs on a data directory back up its database.
 *
 * @throws Error when no service runs there, or when the backup fails
 */
export async function requestBackup(
  dataDir: string,
  isOnS3: boolean,
  report: (progress: string) => void,
): Promise<DatabaseBackup> {
  const socket = await connectTo(dataDir)
  if (socket === null)
    throw new Error(
      `no service runs on ${dataDir}: start it, or copy the directory of a stopped one as it is`,
    )
  return await ask(socket, { kind: 'backup', isOnS3 }, report)
}

/** @returns null when no service runs on the data directory */
export async function requestPasswordReset(
  dataDir: string,
  email: string,
): Promise<PasswordReset | null> {
  const socket = await connectTo(dataDir)
  if (socket === null) return null
  return await ask(socket, { kind: 'reset-password', email })
}

/** @returns the e-mail; null when no service runs on the data directory */
export async function requestSecondFactorReset(
  dataDir: string,
  email: string,
): Promise<string | null> {
  const socket = await connectTo(dataDir)
  if (socket === null) return null
  return await ask(socket, { kind: 'reset-second-factor', email })
}

/** @throws Error when no service runs on the data directory */
export async function requestAuditReport(dataDir: string): Promise<AuditReport> {
  const socket = await connectTo(dataDir)
  if (socket === null) throw new Error(`no service runs on ${dataDir}: start it`)
  return await ask(socket, { kind: 'verify-audit' })
}

async function connectTo(dataDir: string): Promise<Socket | null> {
  const pointer = pointerFile(dataDir)
  const path = existsSync(pointer) ? readFileSync(pointer, 'utf8') : socketFile(dataDir)
  const socket = connect(path)
  return await new Promise((resolve) => {
    socket.once('connect', () => resolve(socket))
    socket.once('error', () => resolve(null))
  })
}

async function ask<Kind extends Request['kind']>(
  socket: Socket,
  request: Extract<Request, { readonly kind: Kind }>,
  report: (progress: string) => void = () => undefined,
): Promise<Results[Kind]> {
  socket.on('error', () => socket.destroy())
  socket.write(`${JSON.stringify(request)}\n`)
  for await (const line of createInterface({ input: socket })) {
    const message = JSON.parse(line) as Message<Results[Kind]> // `serve` writes it.
    if (message.kind === 'progress') report(message.text)
    if (message.kind === 'error') throw new Error(message.text)
    if (message.kind === 'result') return message.value
  }
  throw new Error('the service ended meanwhile')
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
