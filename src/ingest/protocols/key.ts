import type { RequestHead } from '../../http/request.js'

/** Headers in which clients of some protocol send their key as it is. */
const KEY_HEADERS = [
  'x-api-key',
  'dd-api-key',
  'x-license-key',
  'api-key',
  'x-insert-key',
  'x-seq-apikey',
] as const
const KEY_PARAMETERS = ['token', 'api_key', 'dd-api-key', 'apiKey', 'Api-Key'] as const
/** What of a request can contain a key. */
export type KeyHead = Pick<RequestHead, 'headers' | 'params' | 'queryText' | 'query'>

const SCHEMES: ReadonlySet<string> = new Set(['bearer', 'splunk', 'apikey', 'basic', 'token'])

/**
 * Finds the ingest key of a request, wherever clients of any protocol send one: `Authorization`, a header, the path
 * (parameter `key`), the query, and last the tenant's header of Loki.
 *
 * @param isKey tells a key from the other words of a credential
 * @returns '' when there is none
 */
export function findKey(head: KeyHead, isKey: (text: string) => boolean): string {
  const authorization = head.headers.first('authorization')
  if (authorization !== undefined) return keyOfAuthorization(authorization, isKey)
  for (const name of KEY_HEADERS) {
    const value = head.headers.first(name)
    if (value !== undefined && value !== '') return value
  }
  return head.params['key'] ?? keyOfQuery(head) ?? head.headers.first('x-scope-orgid') ?? ''
}

function keyOfQuery({ queryText, query }: KeyHead): string | null {
  if (queryText === '') return null
  for (const name of KEY_PARAMETERS) {
    const value = query.get(name) ?? ''
    if (value !== '') return value
  }
  return null
}

function keyOfAuthorization(text: string, isKey: (text: string) => boolean): string {
  const [, scheme = '', credential = ''] = /^(\S+) +(\S+) *$/.exec(text) ?? []
  if (!SCHEMES.has(scheme.toLowerCase())) return ''
  // An Elasticsearch key may be the text itself, or `id:key` in base64.
  const isEncoded = /^(?:basic|apikey)$/i.test(scheme) && !isKey(credential)
  return isEncoded ? keyOfPair(credential, isKey) : credential
}

/** The password is the key; some clients have a place for a user only. */
function keyOfPair(base64: string, isKey: (text: string) => boolean): string {
  const pair = Buffer.from(base64, 'base64').toString('utf8')
  const colon = pair.indexOf(':')
  const [user, password] = [pair.slice(0, Math.max(colon, 0)), pair.slice(colon + 1)]
  return user !== '' && !isKey(password) && isKey(user) ? user : password
}
