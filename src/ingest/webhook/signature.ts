import { createHmac, timingSafeEqual } from 'node:crypto'

/** 32 bytes as lower-case hex; the length and alphabet of a digest are no secret. */
const HEX_DIGEST = /^[0-9a-f]{64}$/

/**
 * Tells whether `header` is the lower-case hex HMAC-SHA256 of the raw body under one of the secrets.
 *
 * Every secret is tried whatever the first says, so the time tells neither which one fits nor how
 * many characters do. Upper-case hex, prefixes and blanks are refused, like any other text.
 *
 * @param secrets the current one and, during a rotation, the previous; empty ones are passed over
 * @returns false without a header or a secret
 * @throws never
 */
export function verifySignature(
  header: string | undefined,
  body: Uint8Array,
  secrets: readonly string[],
): boolean {
  if (header === undefined || !HEX_DIGEST.test(header)) return false
  const given = Buffer.from(header, 'latin1')
  let fits = false
  for (const secret of secrets) {
    if (secret === '') continue
    const own = Buffer.from(createHmac('sha256', secret).update(body).digest('hex'), 'latin1')
    fits = timingSafeEqual(own, given) || fits
  }
  return fits
}
