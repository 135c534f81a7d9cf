import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'

import { checkedAddress, connectTo } from './addresses.js'

export interface PostRequest {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string
  readonly mayBePrivate: boolean
  readonly timeoutMs?: number
}

export interface PostReply {
  readonly status: number
  /** The beginning of the reply. */
  readonly text: string
}

const TIMEOUT_MS = 10_000
const MAX_REPLY_CHARS = 64_000

/**
 * Posts JSON without following redirects; a redirect is returned as the reply.
 *
 * @throws AddressError for a forbidden address, Error of the connection
 */
export async function post({
  url,
  headers = {},
  body,
  mayBePrivate,
  timeoutMs = TIMEOUT_MS,
}: PostRequest): Promise<PostReply> {
  const target = new URL(url)
  const address = await checkedAddress(target.hostname, mayBePrivate)
  const bytes = Buffer.from(body)
  const open = target.protocol === 'https:' ? requestHttps : requestHttp
  return await new Promise<PostReply>((done, fail) => {
    const request = open(target, {
      method: 'POST',
      agent: false,
      lookup: connectTo(address),
      signal: AbortSignal.timeout(timeoutMs),
      headers: {
        'content-type': 'application/json',
        'content-length': bytes.length,
        'user-agent': 'log-analytics-engine',
        ...headers,
      },
    })
    request.on('error', fail)
    request.on('response', (response) => {
      let text = ''
      const end = (): void => {
        done({ status: response.statusCode ?? 0, text })
        request.destroy()
      }
      response.setEncoding('utf8')
      response.on('error', fail)
      response.on('end', end)
      response.on('data', (chunk: string) => {
        text = (text + chunk).slice(0, MAX_REPLY_CHARS)
        if (text.length === MAX_REPLY_CHARS) end()
      })
    })
    request.end(bytes)
  })
}
