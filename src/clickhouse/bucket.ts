import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import { AwsClient } from 'aws4fetch'

import type { S3 } from '../settings/cold.js'

/** The manifests of backups on S3, and the keys that belong to them. */
export interface Bucket {
  /** Writes an object and deletes it again. @throws Error saying why S3 refuses it */
  check(): Promise<void>
  has(path: string): Promise<boolean>
  put(path: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>
  get(path: string): Promise<Uint8Array>
}

const FOLDER = 'manifests/'
/** The prefix of the objects that `check` writes; no backup has such a name. */
const CHECK = '.check-'
const TIMEOUT_MS = 60_000
const TRIES = 4
/** The pause after the first attempt is twice this, and doubles after each further one. */
const RETRY_MS = 50
/** The timeout of `check`. */
const CHECK_MS = 5_000

/** Opens a bucket. Its methods reject with an Error that has S3's answer and nothing of the request. */
export function openBucket({ url, accessKeyId, secretAccessKey, region }: S3): Bucket {
  const client = new AwsClient({
    accessKeyId,
    secretAccessKey,
    service: 's3',
    ...(region === '' ? {} : { region }),
  })
  const ask = async (
    path: string,
    init: RequestInit,
    timeoutMs = TIMEOUT_MS,
  ): Promise<Response> => {
    const signal = AbortSignal.timeout(timeoutMs)
    const at = `${url}${FOLDER}${path}`
    const attempt = async (): Promise<Response> => {
      // Not `client.fetch`: it passes the signal in a Request object. When that is garbage-collected, the timeout never fires.
      const request = await client.sign(at, init)
      return await fetch(request, { signal })
    }
    const reply = await retried(attempt, signal).catch((cause: unknown) => {
      throw new Error(`S3 at ${new URL(url).host} does not answer (${codeOf(cause)})`, { cause })
    })
    if (reply.ok || reply.status === 404) return reply
    const code = /<Code>(\w{1,60})<\/Code>/.exec(await reply.text())?.[1] ?? 'no reason'
    throw new Error(`S3 at ${new URL(url).host} answered ${reply.status} (${code})`)
  }
  const write = async (
    path: string,
    body: Uint8Array<ArrayBuffer>,
    timeoutMs = TIMEOUT_MS,
  ): Promise<void> => {
    const { status } = await ask(path, { method: 'PUT', body }, timeoutMs)
    if (status === 404) throw new Error('S3 has no bucket of the name in S3_URL')
  }
  return {
    check: async () => {
      const path = CHECK + randomUUID()
      await write(path, new Uint8Array(), CHECK_MS)
      await ask(path, { method: 'DELETE' }, CHECK_MS)
    },
    has: async (path) => (await ask(path, { method: 'GET' })).status !== 404,
    put: (path, bytes) => write(path, bytes),
    get: async (path) => {
      const reply = await ask(path, { method: 'GET' })
      if (reply.status === 404) throw new Error(`S3 has no ${FOLDER}${path}`)
      return new Uint8Array(await reply.arrayBuffer())
    },
  }
}

/** Sends a request again while S3 is busy or at fault. @returns the last reply */
async function retried(attempt: () => Promise<Response>, signal: AbortSignal): Promise<Response> {
  for (let tries = 1; ; tries++) {
    const reply = await attempt()
    if (tries === TRIES || (reply.status < 500 && reply.status !== 429)) return reply
    await reply.body?.cancel()
    await sleep(RETRY_MS * 2 ** tries, undefined, { signal })
  }
}

/** @param cause a failed fetch, whose cause is the network error */
function codeOf(cause: unknown): string {
  const fault = cause instanceof Error ? (cause.cause ?? cause) : cause
  if (!(fault instanceof Error)) return 'unknown fault'
  return 'code' in fault && typeof fault.code === 'string' ? fault.code : fault.name
}
