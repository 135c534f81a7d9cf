import { crc32 } from 'node:zlib'

/** CRC-32 over several byte ranges as if they were one. */
export function crc32Of(parts: readonly Uint8Array[]): number {
  let crc = 0
  for (const part of parts) crc = crc32(part, crc)
  return crc
}
