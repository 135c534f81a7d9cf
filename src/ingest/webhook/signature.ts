import { timingSafeEqual, webcrypto } from 'node:crypto'

/** 32 bytes as lower-case hex. The format may be checked in variable time, because it is no secret. */
const HEX_DIGEST = /^[0-9a-f]{64}$/

/**
 * Tells whether `header` is the lower-case hex HMAC-SHA256 of the raw body under one of the secrets.
 *
 * The header is always compared with every secret, so that the time does not depend on which one matches. Upper-case
 * hex, prefixes and blanks are rejected.
 *
 * @param secrets the current one and, during a rotation, the previous; empty ones are skipped
 * @returns false without a header or a secret
 */
export async function verifySignature(
  header: string | undefined,
  body: Uint8Array,
  secrets: readonly string[],
): Promise<boolean> {
  if (header === undefined || !HEX_DIGEST.test(header)) return false
  const given = Buffer.from(header, 'latin1')
  let fits = false
  for (const secret of secrets) {
    if (secret === '') continue
    const own = Buffer.from(await digestOf(secret, body), 'latin1')
    fits = timingSafeEqual(own, given) || fits
  }
  return fits
}

/** Runs in the thread pool, because anybody may send bodies of 25 MiB, each of which would stop the event loop. */
async function digestOf(secret: string, body: Uint8Array): Promise<string> {
  const hmac = { name: 'HMAC', hash: 'SHA-256' }
  const key = await webcrypto.subtle.importKey('raw', Buffer.from(secret), hmac, false, ['sign'])
  // Web Crypto takes no shared memory, in which bodies are.
  return Buffer.from(await webcrypto.subtle.sign(hmac, key, new Uint8Array(body))).toString('hex')
}
