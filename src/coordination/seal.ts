import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

import type { Config } from '../config.js'
import type { DataDir } from './data-dir.js'

/** Encrypts small secrets for storage, so that a reader of the database does not learn them. */
export interface Seal {
  /** @param context what the secret belongs to, such as the id of its record; a sealed text opens with the same one only */
  readonly seal: (text: string, context: string) => string
  /** @returns null when the text was changed, or sealed with another key or context */
  readonly open: (sealed: string, context: string) => string | null
}

/** What helps after the key was changed; see `openSeal`. */
export const CHANGED_KEY_HINT =
  'set DATA_KEY to the former one (where it was never set: the file data-key of DATA_DIR or its backup, or, of instances ' +
  'that share a database, the former JWT_SECRET)'

const IV_BYTES = 12
const TAG_BYTES = 16

/** AES-256-GCM with a key derived from a secret. */
export function createSeal(secret: string): Seal {
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'sealed secrets', 32))
  return {
    seal: (text, context) => {
      const iv = randomBytes(IV_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context))
      const body = [cipher.update(text, 'utf8'), cipher.final()]
      return Buffer.concat([iv, cipher.getAuthTag(), ...body]).toString('base64url')
    },
    open: (sealed, context) => {
      const bytes = Buffer.from(sealed, 'base64url')
      const [iv, rest] = [bytes.subarray(0, IV_BYTES), bytes.subarray(IV_BYTES)]
      if (rest.length < TAG_BYTES) return null
      const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES })
      decipher.setAAD(Buffer.from(context)).setAuthTag(rest.subarray(0, TAG_BYTES))
      try {
        const body = decipher.update(rest.subarray(TAG_BYTES))
        return Buffer.concat([body, decipher.final()]).toString('utf8')
      } catch {
        return null
      }
    },
  }
}

/**
 * Creates the seal of stored secrets. Instances that share a database use one key, because each
 * decrypts what the others have encrypted.
 */
export function openSeal(
  { dataKey, redisUrl, clickhouseUrl, jwtSecret }: Config,
  dataDir: Pick<DataDir, 'secret'>,
): Seal {
  const isShared = redisUrl !== null && clickhouseUrl !== null
  return createSeal(dataKey ?? (isShared ? jwtSecret : null) ?? dataDir.secret('data-key'))
}
