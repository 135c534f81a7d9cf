import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

type Bytes = string | ArrayBuffer | Uint8Array

/** Valid until it is answered or aborted; any later call throws. */
export interface UwsResponse {
  onAborted(handler: () => void): UwsResponse
  onData(handler: (chunk: ArrayBuffer, isLast: boolean) => void): UwsResponse
  onWritable(handler: (offset: number) => boolean): UwsResponse
  cork(write: () => void): UwsResponse
  writeStatus(status: string): UwsResponse
  writeHeader(name: string, value: string): UwsResponse
  /** @returns false when the client is behind; `onWritable` is called when it has caught up */
  write(chunk: Bytes): boolean
  end(body?: Bytes, close?: boolean): UwsResponse
  endWithoutBody(): UwsResponse
  tryEnd(chunk: Bytes, totalBytes: number): [ok: boolean, done: boolean]
  getWriteOffset(): number
  close(): UwsResponse
  /** Stops reading from the connection, which may be idle meanwhile. */
  pause(): void
  resume(): void
  getRemoteAddress(): ArrayBuffer
  upgrade(
    user: unknown,
    key: string,
    protocol: string,
    extensions: string,
    context: UwsContext,
  ): void
}

/** Valid only until the handler returns or awaits. */
export interface UwsRequest {
  getUrl(): string
  getMethod(): string
  /** Undefined when the target has no `?`. */
  getQuery(): string | undefined
  getHeader(lowerCaseName: string): string
  forEach(visit: (name: string, value: string) => void): void
}

export interface UwsSocket<User> {
  /** @returns 1 sent, 0 buffered, 2 dropped */
  send(message: Bytes, isBinary?: boolean): number
  /** Bytes that were sent and are not with the kernel yet. */
  getBufferedAmount(): number
  end(code?: number, reason?: string): void
  close(): void
  subscribe(topic: string): boolean
  getUserData(): User
}

declare const nativeHandle: unique symbol
interface UwsContext {
  readonly [nativeHandle]: 'context'
}
export interface UwsListenSocket {
  readonly [nativeHandle]: 'listen socket'
}

export interface UwsWebSocketBehavior<User> {
  readonly compression: number
  readonly maxPayloadLength: number
  /** In seconds: 0 or 8..960. With 1..7 uWebSockets.js ends the process. */
  readonly idleTimeout: number
  readonly maxBackpressure: number
  readonly closeOnBackpressureLimit: boolean
  readonly sendPingsAutomatically: boolean
  readonly upgrade: (res: UwsResponse, req: UwsRequest, context: UwsContext) => void
  readonly open: (socket: UwsSocket<User>) => void
  readonly message: (socket: UwsSocket<User>, message: ArrayBuffer, isBinary: boolean) => void
  /** Called for each ping frame, which uWebSockets.js has answered. */
  readonly ping?: (socket: UwsSocket<User>) => void
  readonly pong?: (socket: UwsSocket<User>) => void
  /** Called when some buffered bytes have been passed to the kernel. */
  readonly drain: (socket: UwsSocket<User>) => void
  readonly close: (socket: UwsSocket<User>, code: number, message: ArrayBuffer) => void
}

export interface UwsApp {
  any(pattern: string, handler: (res: UwsResponse, req: UwsRequest) => void): UwsApp
  ws<User>(pattern: string, behavior: UwsWebSocketBehavior<User>): UwsApp
  /** @param change 1 when a connection opens, -1 when it ends */
  filter(handler: (res: UwsResponse, change: number) => void): UwsApp
  listen(
    host: string,
    port: number,
    options: number,
    done: (socket: UwsListenSocket | false) => void,
  ): UwsApp
  publish(topic: string, message: Bytes, isBinary?: boolean): boolean
  close(): UwsApp
}

export interface UwsPart {
  readonly name: string
  readonly data: ArrayBuffer
  readonly type?: string
  readonly filename?: string
}

/** The part of uWebSockets.js that every supported build has. */
interface UwsAddon {
  App(): UwsApp
  getParts(body: Uint8Array, contentType: string): UwsPart[] | undefined
  us_listen_socket_close(socket: UwsListenSocket): void
  us_socket_local_port(socket: UwsListenSocket): number
  readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number
}

export interface Uws {
  readonly addon: UwsAddon
  /** Package and version that were loaded. */
  readonly build: string
}

interface Candidate {
  /** Order of the candidates; the npm version of the repack does not show its age. */
  readonly rank: number
  readonly build: string
  readonly load: () => unknown
}

const HEAD_BYTES_VARIABLE = 'UWS_HTTP_MAX_HEADERS_SIZE'

/**
 * Limit of a request head above which uWebSockets.js itself answers 431 with a page of HTML and closes.
 * It is larger than the server's `headBytes`, so that the client gets an error in JSON.
 */
const NATIVE_HEAD_BYTES = 131_072

/**
 * Loads the newest uWebSockets.js build that runs on this platform.
 *
 * @param env the environment of the process, from which uWebSockets.js reads its limit of a head
 * when it is loaded; an existing value is kept
 * @throws Error naming the platform and the remedy when no build loads
 */
export function loadUws(env: Record<string, string | undefined>): Uws {
  env[HEAD_BYTES_VARIABLE] ??= String(NATIVE_HEAD_BYTES)
  const refused: string[] = []
  for (const candidate of findCandidates()) {
    try {
      const addon = candidate.load()
      if (isAddon(addon)) return { addon, build: candidate.build }
      refused.push(`${candidate.build}: not a build of uWebSockets.js`)
    } catch (error) {
      refused.push(`${candidate.build}: ${reasonOf(error)}`)
    }
  }
  throw new Error(explainRefusal(refused))
}

const require = createRequire(import.meta.url)

function findCandidates(): Candidate[] {
  const found = [toCandidate('uws-next'), toCandidate('uWebSockets.js')]
  return found.filter((candidate) => candidate !== null).sort((a, b) => b.rank - a.rank)
}

/** Reads the manifest without loading the package. @returns null when it is not installed */
function toCandidate(name: string): Candidate | null {
  const root = packageRoot(name)
  if (root === null) return null
  const manifest: unknown = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const { name: realName, version } = toManifest(manifest)
  const build = `${realName} ${version}`
  if (realName !== 'uws-pack') {
    return { rank: minorOf(version), build, load: () => require(root) }
  }
  // The repack supports `import` only, and a failing import() of an addon raises a second, uncaught
  // error on Node 20. So its binary is loaded as its own loader does.
  const binary = `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`
  return {
    rank: 49,
    build: `${build} (v20.49)`,
    load: () => require(join(root, 'dist', 'bin', binary)),
  }
}

/** Searches node_modules, because `exports` of some builds hide both the manifest and the binaries. */
function packageRoot(name: string): string | null {
  let folder = dirname(fileURLToPath(import.meta.url))
  for (;;) {
    const root = join(folder, 'node_modules', name)
    if (isReadable(join(root, 'package.json'))) return root
    const parent = dirname(folder)
    if (parent === folder) return null
    folder = parent
  }
}

function isReadable(path: string): boolean {
  try {
    readFileSync(path)
    return true
  } catch {
    return false
  }
}

function toManifest(value: unknown): { name: string; version: string } {
  const { name, version } = Object(value)
  return { name: String(name), version: String(version) }
}

/** The minor version, such as 56 of 20.56.0; all builds have the same major version. */
function minorOf(version: string): number {
  return Number(version.split('.')[1] ?? 0)
}

function isAddon(value: unknown): value is UwsAddon {
  if (typeof value !== 'object' || value === null) return false
  const has = (key: string): boolean => key in value
  return ['App', 'getParts', 'us_listen_socket_close', 'us_socket_local_port'].every(has)
}

function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  const [message = ''] = text.split('\nRequire stack:')
  // The official loader puts the system's error on the last line.
  return message.trim().split('\n').at(-1) || 'unknown reason'
}

function explainRefusal(refused: readonly string[]): string {
  const platform = `${process.platform} ${process.arch}, Node ${process.versions.node}`
  return [
    `no build of uWebSockets.js loads on ${platform}`,
    ...(refused.length === 0 ? ['none is installed: run npm install'] : refused),
    'ways out: run Node 22 (or 20) on glibc Linux 2.28+, macOS or Windows, or put the official build in place with npm "overrides": {"uWebSockets.js": "uNetworking/uWebSockets.js#v20.52.0"} or newer',
  ].join('; ')
}
