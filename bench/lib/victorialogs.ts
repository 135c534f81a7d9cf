import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../test/support/ports.js'
import { readUsage, type Usage } from './processes.js'

export const NEIGHBOUR = 'VictoriaLogs'

/** A VictoriaLogs process started by the bench on loopback, with a folder of its own. */
export interface VictoriaLogs {
  readonly url: string
  usage(): Usage
  /** @param logsQl further arguments may follow it @throws Error on any other status than 200 */
  ask(logsQl: string, path?: string, more?: Readonly<Record<string, string>>): Promise<string>
  /** The number of stored events. */
  count(): Promise<number>
  /** Waits until it has written and merged all data in memory. */
  settle(): Promise<void>
  /** @returns the bytes on disk after the process has ended */
  stop(): Promise<number>
}

const START_MAX_MS = 30_000
/** VictoriaLogs flushes its memory to disk every five seconds, and merges a little later. */
const QUIET_MS = 7_000
const STEP_MS = 500
/** The share of a core up to which VictoriaLogs counts as idle. */
const QUIET_SHARE = 0.06
const SETTLE_MAX_MS = 120_000
const STOP_MAX_MS = 30_000

/**
 * @param program the path of VictoriaLogs (github.com/VictoriaMetrics/VictoriaLogs)
 * @param syslogPort the TCP port for syslog; null for none
 * @throws Error when it cannot be started or does not answer
 */
export async function startVictoriaLogs(
  program: string,
  syslogPort: number | null = null,
): Promise<VictoriaLogs> {
  const folder = mkdtempSync(join(tmpdir(), 'victorialogs-'))
  const address = `127.0.0.1:${await freePort()}`
  const argv = [
    `-storageDataPath=${folder}`,
    `-httpListenAddr=${address}`,
    // VictoriaLogs drops events that are older than its retention.
    '-retentionPeriod=100d',
    '-loggerLevel=ERROR',
    ...(syslogPort === null ? [] : [`-syslog.listenAddr.tcp=127.0.0.1:${syslogPort}`]),
  ]
  const child = spawn(program, argv, { stdio: ['ignore', 'ignore', 'inherit'] })
  const ended = once(child, 'exit')
  // The event also comes when the process cannot be started.
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
  const url = `http://${address}`
  const ask: VictoriaLogs['ask'] = async (logsQl, path = 'query', more = {}) => {
    const asked = new URLSearchParams({ query: logsQl, ...more })
    const reply = await fetch(`${url}/select/logsql/${path}?${asked.toString()}`)
    const text = await reply.text()
    if (!reply.ok) throw new Error(`${NEIGHBOUR} answered ${reply.status} ${text}`)
    return text
  }
  return {
    url,
    usage: read,
    ask,
    count: async () => Number(Object(JSON.parse(await ask('* | stats count() counted'))).counted),
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
