import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bound } from './bound.js'

/** Another process, of another user if it can be, that listens on a port as soon as it is free. */
export interface PortThief {
  /** Blocks this process, its events too, until the thief listens. */
  waitUntilItListens(): void
  /** What has come in so far. */
  taken(): { readonly connections: number; readonly bytes: number }
}

/** Answers every request like a ClickHouse that has done what it was asked. */
const PROGRAM = `
  const { createServer } = require('node:net')
  const { writeFileSync, renameSync } = require('node:fs')
  const [port, file] = process.argv.slice(1)
  const taken = { connections: 0, bytes: 0 }
  const tell = () => { writeFileSync(file + '.new', JSON.stringify(taken)); renameSync(file + '.new', file) }
  const server = createServer((socket) => {
    taken.connections++
    tell()
    socket.on('error', () => {}).on('data', (data) => {
      taken.bytes += data.length
      tell()
      socket.write('HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n')
    })
  })
  const listen = () => server.listen(Number(port), '127.0.0.1')
  server.on('listening', tell).on('error', () => setImmediate(listen))
  process.stdout.write('ready')
  listen()`

export async function startPortThief(
  owner: { teardown(end: () => unknown): void },
  port: number,
): Promise<PortThief> {
  const dir = mkdtempSync(join(tmpdir(), 'port-thief-'))
  chmodSync(dir, 0o777)
  const file = join(dir, 'taken')
  const other = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  const child = spawn(...bound(process.execPath, ['-e', PROGRAM, String(port), file]), {
    ...other,
    cwd: '/',
    env: {},
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  owner.teardown(() => {
    child.kill('SIGKILL')
    rmSync(dir, { recursive: true, force: true })
  })
  await once(child.stdout, 'data')
  const cell = new Int32Array(new SharedArrayBuffer(4))
  return {
    waitUntilItListens: () => {
      while (!existsSync(file)) Atomics.wait(cell, 0, 0, 5)
    },
    taken: () =>
      existsSync(file)
        ? (JSON.parse(readFileSync(file, 'utf8')) as ReturnType<PortThief['taken']>) // its own file
        : { connections: 0, bytes: 0 },
  }
}
