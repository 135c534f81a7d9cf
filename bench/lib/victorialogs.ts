import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findFreePort } from '../../src/clickhouse/embedded/embedded.js'
import { readUsage, type Usage } from './processes.js'

/** A VictoriaLogs that the bench started, on loopback, with a folder of its own. */
export interface VictoriaLogs {
  readonly url: string
  usage(): Usage
  /** Waits until it has written and merged what it holds in memory. */
  settle(): Promise<void>
  /** @returns bytes on disk after its end */
  stop(): Promise<number>
}

const START_MAX_MS = 30_000
/** It writes to disk what is in memory every five seconds, and merges a little later. */
const QUIET_MS = 7_000
const STEP_MS = 500
/** CPU share of one core that still counts as quiet */
const QUIET_SHARE = 0.06
const SETTLE_MAX_MS = 120_000
const STOP_MAX_MS = 30_000

/**
 * @param program path of VictoriaLogs (github.com/VictoriaMetrics/VictoriaLogs)
 * @throws Error when it cannot be started or does not answer
 */
export async function startVictoriaLogs(program: string): Promise<VictoriaLogs> {
  const folder = mkdtempSync(join(tmpdir(), 'victorialogs-'))
  const address = `127.0.0.1:${await findFreePort()}`
  const argv = [
    `-storageDataPath=${folder}`,
    `-httpListenAddr=${address}`,
    // what is older than this would not be stored
    '-retentionPeriod=100d',
    '-loggerLevel=ERROR',
  ]
  const child = spawn(program, argv, { stdio: ['ignore', 'ignore', 'inherit'] })
  const ended = once(child, 'exit')
  // also when it can't be started at all
  ended.catch(() => undefined)
  const read = (): Usage => {
    const usage = child.pid === undefined ? null : readUsage(child.pid)
    if (usage === null) throw new Error(`${program} is not running`)
    return usage
  }
  const end = async (): Promise<void> => {
    child.kill('SIGINT')
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MAX_MS)
    await ended.catch(() => undefined)
    clearTimeout(timer)
  }
  try {
    await once(child, 'spawn')
    await untilHealthy(`http://${address}/health`, () => child.exitCode !== null)
  } catch (error) {
    await end()
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
  return {
    url: `http://${address}`,
    usage: read,
    settle: async () => {
      let [last, quietMs] = [read().cpuS, 0]
      for (let ms = 0; quietMs < QUIET_MS && ms < SETTLE_MAX_MS; ms += STEP_MS) {
        await sleep(STEP_MS)
        const { cpuS } = read()
        quietMs = cpuS - last <= QUIET_SHARE * (STEP_MS / 1000) ? quietMs + STEP_MS : 0
        last = cpuS
      }
    },
    stop: async () => {
      await end()
      const bytes = bytesWithin(folder)
      rmSync(folder, { recursive: true, force: true })
      return bytes
    },
  }
}

async function untilHealthy(url: string, hasEnded: () => boolean): Promise<void> {
  for (let ms = 0; ms < START_MAX_MS; ms += 50) {
    if (hasEnded()) throw new Error('VictoriaLogs ended at its start')
    const reply = await fetch(url).catch(() => null)
    if (reply?.ok === true) return
    await sleep(50)
  }
  throw new Error(`VictoriaLogs gave no answer within ${START_MAX_MS / 1000} s`)
}

const bytesWithin = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0)
