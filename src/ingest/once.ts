import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import { AppError } from '../model/errors.js'

/** What is sent again within this time is a repeat. */
const WINDOW_MS = 300_000
/** An instance that dies while it stores blocks repeats for at most this long. */
const STORING_MS = 20_000
const POLL_MS = 100
const STORING = 'storing'

/** The keys of what was stored within the window, shared by all instances. */
export interface SeenKeys {
  get(key: string): Promise<string | null>
  set(key: string, value: string, ttlMs: number): Promise<void>
  setIfAbsent(key: string, value: string, ttlMs: number): Promise<boolean>
  delete(key: string): Promise<void>
}

/** Keys that nobody else may store until `stored` or `release`. */
export interface Claim {
  /** By key: whether it is new. The others were stored before. */
  readonly isNew: readonly boolean[]
  /**
   * Called when it is durable: repeats are found from now on. It never rejects.
   *
   * @param keys of what was stored; others are released. Default: all
   */
  readonly stored: (keys?: ReadonlySet<string>) => Promise<void>
  /** Called when nothing was stored: whoever comes next may try. It never rejects. */
  readonly release: () => Promise<void>
}

/** The key of something that is stored once for a sender; what the sender names is hashed. */
export const onceKey = (kind: string, keyId: string, text: string): string =>
  `once:${kind}:${createHash('sha256').update(`${keyId} ${text}`).digest('base64url')}`

/** Lets what senders repeat be stored once. */
export interface Once {
  /**
   * Claims keys, each of which is distinct. While another sender stores one of them, it waits for the outcome.
   *
   * @param source whose deletion makes its keys new again; null for keys of any source
   * @throws AppError `dependency_unavailable` when the other sender takes too long
   */
  readonly claim: (keys: readonly string[], source: string | null) => Promise<Claim>
}

/**
 * A key is first set to "storing", then to "stored" when its message is durable, or deleted when it could not be stored. A
 * deletion of sources begins a new epoch, which invalidates the stored keys.
 *
 * @param seenHere the keys of this process, used while the shared state is not available
 */
export function createOnce(seen: SeenKeys, seenHere: SeenKeys): Once {
  return {
    claim: async (keys, source) => {
      try {
        return await claimIn(seen, keys, source)
      } catch (error) {
        if (error instanceof AppError && error.details['dependency'] !== 'state') throw error
        return await claimIn(seenHere, keys, source)
      }
    },
  }
}

async function claimIn(
  seen: SeenKeys,
  keys: readonly string[],
  source: string | null,
): Promise<Claim> {
  const names = source === null ? [EVERYTHING] : [EVERYTHING, source]
  const epochs = await Promise.all(names.map((name) => seen.get(epochKey(name))))
  const value = ['stored', ...epochs.map((epoch) => epoch ?? '')].join(' ').trimEnd()
  const deadline = Date.now() + STORING_MS
  for (;;) {
    const outcomes = await Promise.all(keys.map((key) => claimOne(seen, key, value)))
    const mine = keys.filter((_, i) => outcomes[i] === 'new')
    const each = async (work: (key: string) => Promise<void>): Promise<void> => {
      await Promise.allSettled(mine.map(work))
    }
    const release = (): Promise<void> => each((key) => seen.delete(key))
    if (!outcomes.includes('busy')) {
      const stored = (of?: ReadonlySet<string>): Promise<void> =>
        each((key) => (of?.has(key) === false ? seen.delete(key) : seen.set(key, value, WINDOW_MS)))
      return { isNew: outcomes.map((outcome) => outcome === 'new'), stored, release }
    }
    // Two senders that each hold a part would wait for each other.
    await release()
    if (Date.now() >= deadline) throw stillBusy()
    await sleep(POLL_MS * (1 + Math.random()))
  }
}

const stillBusy = (): AppError =>
  new AppError('dependency_unavailable', 'the same is still being stored', {
    details: { dependency: 'spool' },
    retryAfterS: 5,
  })

/** `busy` while another sender stores the same, because this one counts if that one fails. */
async function claimOne(
  seen: SeenKeys,
  key: string,
  value: string,
): Promise<'new' | 'repeat' | 'busy'> {
  if (await seen.setIfAbsent(key, STORING, STORING_MS)) return 'new'
  const found = await seen.get(key)
  if (found === null || found === STORING) return 'busy'
  if (isOfNow(found, value)) return 'repeat'
  // Only the first of those that find an outdated key may delete it, else it could delete a new key.
  if (!(await seen.setIfAbsent(`${key} ${found}`, 'gone', WINDOW_MS))) return 'busy'
  await seen.delete(key)
  return (await seen.setIfAbsent(key, STORING, STORING_MS)) ? 'new' : 'busy'
}

/** The epoch of all sources; no source has an empty name. */
const EVERYTHING = ''
const epochKey = (source: string): string => `webhook-epoch:${source}`

/**
 * Whether a key was stored since the last deletion. An epoch outlives all keys that were stored before it, so one that
 * has expired needs no comparison.
 */
function isOfNow(found: string, value: string): boolean {
  const before = found.split(' ')
  return value.split(' ').every((epoch, i) => epoch === '' || epoch === (before[i] ?? ''))
}

/** Lets keys count as stored that an earlier run stored and may not have acknowledged. */
export async function rememberStored(
  seen: Pick<SeenKeys, 'set'>,
  keys: readonly string[],
): Promise<void> {
  for (const key of keys) await seen.set(key, 'stored', WINDOW_MS)
}

/**
 * Lets what was sent of these sources be stored again, because their events are being deleted.
 *
 * @param sources null stands for all sources
 */
export async function forgetStored(
  seen: Pick<SeenKeys, 'set'>,
  sources: readonly string[] | null,
): Promise<void> {
  const names = sources ?? [EVERYTHING]
  const lastingMs = WINDOW_MS + STORING_MS
  await Promise.all(names.map((name) => seen.set(epochKey(name), randomUUID(), lastingMs)))
}
