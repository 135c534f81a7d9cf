import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { bound } from './bound.js'
import { freePort } from './ports.js'
import { MINUTE_MS } from '../../src/model/time.js'

/** The path of Debian's package `zookeeper`. */
const JAR = '/usr/share/java/zookeeper.jar'
const READY_MS = 5 * MINUTE_MS
const ANSWER_MS = 2_000

export interface ZooKeeper {
  readonly port: number
  stop(): Promise<void>
}

/** @returns null when the package is not installed */
export async function startZooKeeper(): Promise<ZooKeeper | null> {
  if (!existsSync(JAR)) return null
  const dir = mkdtempSync(join(tmpdir(), 'zookeeper-test-'))
  const port = await freePort()
  const settings = ['-Xmx256m', '-Dzookeeper.admin.enableServer=false']
  const main = 'org.apache.zookeeper.server.ZooKeeperServerMain'
  const child = spawn(...bound('java', [...settings, '-cp', JAR, main, String(port), dir]), {
    stdio: 'ignore',
  })
  const ended = new Promise((resolve) => child.once('close', resolve))
  for (const until = Date.now() + READY_MS; !(await serves(port)); await sleep(200))
    if (Date.now() > until || child.exitCode !== null) throw new Error('ZooKeeper did not come up')
  return {
    port,
    stop: async () => {
      child.kill('SIGKILL')
      await ended
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

/** Sends `srvr`, the only four-letter command that is enabled by default. */
const serves = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    let text = ''
    const socket = connect(port, '127.0.0.1', () => socket.write('srvr'))
    // A server that is starting may not answer.
    socket.setTimeout(ANSWER_MS, () => socket.destroy())
    socket.on('data', (data) => (text += String(data)))
    socket.on('error', () => resolve(false))
    socket.on('close', () => resolve(text.includes('Mode:')))
  })
