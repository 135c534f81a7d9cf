import type { RequestHead } from '../../http/request.js'

/** Headers in which clients of some protocol send their key. */
const KEY_HEADERS = [
  'x-api-key',
  'dd-api-key',
  'x-license-key',
  'api-key',
  'x-insert-key',
  'x-seq-apikey',
] as const
const KEY_PARAMETERS = ['token', 'api_key', 'dd-api-key', 'apiKey', 'Api-Key'] as const
/** The parts of a request that may contain a key. */
export type KeyHead = Pick<RequestHead, 'headers' | 'params' | 'queryText' | 'query'>

const SCHEMES: ReadonlySet<string> = new Set(['bearer', 'splunk', 'apikey', 'basic', 'token'])

/**
 * Finds the ingest key of a request in all places where clients of any protocol send one:
 * `Authorization`, a header, the path (parameter `key`), the query, and last the tenant header of
 * Loki. A proxy or library may have put something else into one of these places.
 *
 * @param verify returns null for a text that is no key
 * @returns the key; or none, together with one of the texts that are no key ('' if there was no
 * text)
 */
export function findKey<Key>(
  head: KeyHead,
  verify: (word: string) => Key | null,
): { readonly word: string; readonly key: Key | null } {
  let other = ''
  for (const word of wordsIn(head)) {
    const key = verify(word)
    if (key !== null) return { word, key }
    if (other === '') other = word
  }
  return { word: other, key: null }
}

function* wordsIn({ headers, params, queryText, query }: KeyHead): Generator<string> {
  const authorization = headers.first('authorization')
  if (authorization !== undefined) yield* wordsOfAuthorization(authorization)
  for (const name of KEY_HEADERS) yield headers.first(name) ?? ''
  yield params['key'] ?? ''
  if (queryText !== '') for (const name of KEY_PARAMETERS) yield query.get(name) ?? ''
  yield headers.first('x-scope-orgid') ?? ''
}

/** The password of Basic authentication is the key; some clients can only set the user. */
function* wordsOfAuthorization(text: string): Generator<string> {
  const [, scheme = '', credential = ''] = /^(\S+) +(\S+) *$/.exec(text) ?? []
  if (!SCHEMES.has(scheme.toLowerCase())) return
  // An Elasticsearch key may be plain, or `id:key` in base64.
  if (!/^basic$/i.test(scheme)) yield credential
  if (!/^(?:basic|apikey)$/i.test(scheme)) return
  const pair = Buffer.from(credential, 'base64').toString('utf8')
  const colon = pair.indexOf(':')
  yield pair.slice(colon + 1)
  if (colon > 0) yield pair.slice(0, colon)
}
