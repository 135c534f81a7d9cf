import type { Config } from '../config.js'
import { createSeal, type Seal } from '../lib/seal.js'
import type { DataDir } from './data-dir.js'

/** Opens the seal of stored secrets. Instances that share a database must open what the others have sealed. */
export function openSeal(
  { dataKey, redisUrl, clickhouseUrl, jwtSecret }: Config,
  dataDir: Pick<DataDir, 'secret'>,
): Seal {
  const isShared = redisUrl !== null && clickhouseUrl !== null
  return createSeal(dataKey ?? (isShared ? jwtSecret : null) ?? dataDir.secret('data-key'))
}
