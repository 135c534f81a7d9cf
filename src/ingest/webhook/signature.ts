import { createHmac, timingSafeEqual, type Hmac } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'

/** 32 bytes as lower-case hex. The format may be checked in variable time, because it is no secret. */
const HEX_DIGEST = /^[0-9a-f]{64}$/
/**
 * Bodies of 25 MiB need no authentication. Hashing a slice takes a fraction of a millisecond, and
 * other requests run between slices.
 */
const SLICE_BYTES = 256 * 1024

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
  const hmacs = secrets
    .filter((secret) => secret !== '')
    .map((secret) => createHmac('sha256', secret))
  await updateAll(hmacs, body)
  let fits = false
  for (const hmac of hmacs) {
    const own = Buffer.from(hmac.digest('hex'), 'latin1')
    fits = timingSafeEqual(own, given) || fits
  }
  return fits
}

async function updateAll(hmacs: readonly Hmac[], body: Uint8Array): Promise<void> {
  for (let at = 0; at < body.length; at += SLICE_BYTES) {
    if (at > 0) await nextTurn()
    for (const hmac of hmacs) hmac.update(body.subarray(at, at + SLICE_BYTES))
  }
}
