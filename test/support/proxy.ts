/** HAProxy with the configuration that is shipped. */
import { spawn } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http'
import { Agent, request as httpsRequest, type RequestOptions } from 'node:https'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { bound } from './bound.js'
import { certificateIn } from './certificate.js'
import { DEPLOY } from './deploy.js'
import { freePort } from './ports.js'
import { runTool, toolPath } from './tools.js'

/** The settings of the ports for protocols without HTTP. */
const BINDS = ['OTLP_GRPC', 'SYSLOG', 'SYSLOG_TLS', 'FORWARD', 'GELF', 'LINES'] as const

interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export interface Proxy {
  readonly port: number
  readonly redirectPort: number
  /** The ports of `BINDS`. */
  readonly ports: readonly number[]
  /** Sends a request over TLS; `body` is sent as it is. */
  ask(path: string, options?: RequestOptions, body?: string | Buffer): Promise<Reply>
}

/** The part of tap's tests that ends something after the test. */
interface Owner {
  teardown(end: () => Promise<unknown> | void): void
}

interface Instance {
  readonly api: string
  readonly collector: string
}

/** One PEM with certificate and key, as HAProxy wants it, and beside it the OCSP reply of its issuer. */
function makeCertificate(dir: string): string {
  const { cert, key } = certificateIn(dir)
  const both = join(dir, 'tls.pem')
  writeFileSync(both, readFileSync(cert, 'utf8') + readFileSync(key, 'utf8'))
  writeFileSync(`${both}.issuer`, readFileSync(cert))
  const index = join(dir, 'index.txt')
  const serial = new X509Certificate(readFileSync(cert)).serialNumber
  writeFileSync(index, `V\t491231000000Z\t\t${serial}\tunknown\t/CN=localhost\n`)
  const names = `-index ${index} -CA ${cert} -rsigner ${cert} -rkey ${key} -issuer ${cert} -cert ${cert}`
  const args = ['ocsp', ...names.split(' '), '-respout', `${both}.ocsp`, '-ndays', '2']
  const { code, text } = runTool('openssl', args)
  if (code !== 0) throw new Error(text)
  return both
}

/** Starts HAProxy; only addresses are given to it, and `settings`. @throws Error when it serves nothing, or complains */
export async function startProxy(
  owner: Owner,
  [one, two]: readonly Instance[],
  settings: Readonly<Record<string, string>> = {},
): Promise<Proxy> {
  const dir = mkdtempSync(join(tmpdir(), 'proxy-test-'))
  const [port, redirectPort] = [await freePort(), await freePort()]
  const certificate = makeCertificate(dir)
  const ports: number[] = []
  const binds: Record<string, string> = {}
  for (const name of BINDS) {
    const own = await freePort()
    ports.push(own)
    binds[`${name}_BIND`] = `127.0.0.1:${own}`
  }
  const env = {
    ...binds,
    ENGINE_1: '127.0.0.1',
    ENGINE_2: '127.0.0.1',
    PUBLIC_BIND: `127.0.0.1:${port}`,
    REDIRECT_BIND: `127.0.0.1:${redirectPort}`,
    CERTIFICATE: certificate,
    MAXCONN: '1000',
    ENGINE_1_API: one?.api ?? '',
    ENGINE_1_COLLECTOR: one?.collector ?? '',
    ENGINE_2_API: two?.api ?? '',
    ENGINE_2_COLLECTOR: two?.collector ?? '',
    ...settings,
  }
  const child = spawn(...bound(toolPath('haproxy'), ['-db', '-f', join(DEPLOY, 'haproxy')]), {
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let told = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (told += text))
  const ended = once(child, 'exit')
  const ca = readFileSync(certificate)
  const agent = new Agent({ keepAlive: true, ca })
  owner.teardown(async () => {
    agent.destroy()
    child.kill('SIGKILL')
    await ended
    rmSync(dir, { recursive: true, force: true })
  })
  const proxy: Proxy = {
    port,
    redirectPort,
    ports,
    ask: (path, options = {}, body) =>
      new Promise((resolve, reject) => {
        const request = httpsRequest(
          { host: '127.0.0.1', port, path, agent, ca, ...options },
          (response) => {
            let text = ''
            response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
            response.on('error', reject).on('end', () => {
              resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
            })
          },
        )
        request.on('error', reject)
        request.end(body)
      }),
  }
  for (const until = Date.now() + 20_000; ; await sleep(50)) {
    const reply = await proxy.ask('/docs').catch(() => null)
    if (reply?.status === 200) break
    if (child.exitCode !== null || Date.now() > until)
      throw new Error(`haproxy serves nothing: ${reply?.status} ${told}`)
  }
  if (/\[(?:WARNING|ALERT)\].*config/.test(told)) throw new Error(`haproxy complains: ${told}`)
  return proxy
}
