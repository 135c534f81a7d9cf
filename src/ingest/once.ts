import { createHash, randomUUID } from 'node:crypto'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'

import { AppError } from '../model/errors.js'
import { DAY_MS } from '../model/time.js'

/** A key that comes again within this time is a repeat. */
export const WINDOW_MS = 300_000
/** How long the claims of an instance that died while storing stay in force. */
const STORING_MS = 20_000
const POLL_MS = 100
/** The keys that are handled in one iteration of the event loop, about 10 ms of work. A body may have 150,000 keys. */
const KEYS_AT_ONCE = 1_000
const STORING = 'storing'
const STORED = 'stored'

/** The keys that were stored within the window, shared by all instances. */
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
   * Called when the claimed messages are durable: from then on repeats are detected. It never rejects.
   *
   * @param keys the keys of what was stored; others are released. Default: all
   */
  readonly stored: (keys?: ReadonlySet<string>) => Promise<void>
  /** Called when nothing was stored, so that the next sender may store it. It never rejects. */
  readonly release: () => Promise<void>
}

/** The key of something that is stored once for a sender. The sender's part of it is hashed. */
export const onceKey = (kind: string, keyId: string, text: string): string =>
  `once:${kind}:${createHash('sha256').update(`${keyId} ${text}`).digest('base64url')}`

/** Makes what senders repeat be stored once. */
export interface Once {
  /**
   * Claims keys, each of which is distinct. While another sender stores one of them, it waits for the outcome.
   *
   * @param source whose deletion makes its keys new again; null for keys of any source
   * @param storedSince finds keys that were stored since a time, where the shared state may have lost them
   * @throws AppError `dependency_unavailable` when the other sender takes too long
   */
  readonly claim: (
    keys: readonly string[],
    source: string | null,
    storedSince?: StoredSince,
  ) => Promise<Claim>
}

/** Never rejects. */
export type StoredSince = (keys: readonly string[], sinceMs: number) => Promise<ReadonlySet<string>>

/**
 * A key is first set to "storing", then to "stored" when its message is durable, or deleted when it could not be stored. A
 * deletion of sources begins a new epoch, which invalidates the stored keys.
 *
 * The shared state may be lost within the window, or not answer. It holds the time at which it was first used: while that is
 * less than a window ago, keys that seem new are looked for in ClickHouse too (`storedSince`). While it does not answer,
 * each process uses keys of its own, and looks in ClickHouse for those of the others.
 *
 * @param seenHere the keys of this process
 */
export function createOnce(seen: SeenKeys, seenHere: SeenKeys): Once {
  return {
    claim: async (keys, source, storedSince = async () => new Set<string>()) => {
      try {
        const isWhole = Date.now() - (await beganAtMs(seen)) >= WINDOW_MS
        const claim = await claimIn(seen, keys, source, isWhole ? null : storedSince)
        const stored: Claim['stored'] = async (of) => {
          await claim.stored(of)
          const mine = keys.filter((key, i) => claim.isNew[i] === true && of?.has(key) !== false)
          await inTurns(mine, (key) => seenHere.set(key, STORED, WINDOW_MS))
        }
        return { ...claim, stored }
      } catch (error) {
        if (error instanceof AppError && error.details['dependency'] !== 'state') throw error
        return await claimIn(seenHere, keys, source, storedSince)
      }
    },
  }
}

/**
 * Handles some keys at a time and yields to the event loop in between.
 *
 * @param isLast whether to stop after an outcome
 */
async function inTurns<T>(
  keys: readonly string[],
  work: (key: string) => Promise<T>,
  isLast: (outcome: T) => boolean = () => false,
): Promise<readonly T[]> {
  const outcomes: T[] = []
  for (let at = 0; at < keys.length; at += KEYS_AT_ONCE) {
    if (at > 0) await nextTurn()
    const some = await Promise.all(keys.slice(at, at + KEYS_AT_ONCE).map(work))
    outcomes.push(...some)
    if (some.some(isLast)) break
  }
  return outcomes
}

/** Like `inTurns`, but continues after a key that fails. */
async function tryInTurns(
  keys: readonly string[],
  work: (key: string) => Promise<void>,
): Promise<void> {
  await inTurns(keys, (key) => work(key).catch(() => undefined))
}

const BEGAN = 'once:began'
const BEGAN_TTL_MS = 30 * DAY_MS

/** When the state was first used since it was last empty. */
async function beganAtMs(seen: SeenKeys): Promise<number> {
  const found = await seen.get(BEGAN)
  if (found !== null) return Number(found)
  const nowMs = Date.now()
  await seen.setIfAbsent(BEGAN, String(nowMs), BEGAN_TTL_MS)
  return nowMs
}

async function claimIn(
  seen: SeenKeys,
  keys: readonly string[],
  source: string | null,
  storedSince: StoredSince | null,
): Promise<Claim> {
  const names = source === null ? [EVERYTHING] : [EVERYTHING, source]
  const epochs = await Promise.all(names.map((name) => seen.get(epochKey(name))))
  const value = [STORED, ...epochs.map((epoch) => epoch ?? '')].join(' ').trimEnd()
  const deadline = Date.now() + STORING_MS
  for (;;) {
    const outcomes = await inTurns(
      keys,
      (key) => claimOne(seen, key, value),
      (outcome) => outcome === 'busy',
    )
    const claimed = keys.filter((_, i) => outcomes[i] === 'new')
    if (!outcomes.includes('busy'))
      return await toClaim({ seen, keys, claimed, value, storedSince })
    // Releases the claimed keys, because two senders that each hold a part would wait for each other.
    await tryInTurns(claimed, (key) => seen.delete(key))
    if (Date.now() >= deadline) throw stillBusy()
    await sleep(POLL_MS * (1 + Math.random()))
  }
}

interface Claimed {
  readonly seen: SeenKeys
  readonly keys: readonly string[]
  /** The keys that nobody else holds. */
  readonly claimed: readonly string[]
  readonly value: string
  readonly storedSince: StoredSince | null
}

async function toClaim({ seen, keys, claimed, value, storedSince }: Claimed): Promise<Claim> {
  const found =
    storedSince === null || claimed.length === 0
      ? new Set<string>()
      : await storedSince(claimed, Date.now() - WINDOW_MS)
  await tryInTurns([...found], (key) => seen.set(key, value, WINDOW_MS))
  const mine = new Set(claimed.filter((key) => !found.has(key)))
  const each = (work: (key: string) => Promise<void>): Promise<void> => tryInTurns([...mine], work)
  return {
    isNew: keys.map((key) => mine.has(key)),
    stored: (of) =>
      each((key) => (of?.has(key) === false ? seen.delete(key) : seen.set(key, value, WINDOW_MS))),
    release: () => each((key) => seen.delete(key)),
  }
}

const stillBusy = (): AppError =>
  new AppError(
    'dependency_unavailable',
    'another request with the same key is still being stored',
    {
      details: { dependency: 'spool' },
      retryAfterS: 5,
    },
  )

/** Claims a key. It is `busy` while another sender stores the same, because this one counts if that one fails. */
async function claimOne(
  seen: SeenKeys,
  key: string,
  value: string,
): Promise<'new' | 'repeat' | 'busy'> {
  if (await seen.setIfAbsent(key, STORING, STORING_MS)) return 'new'
  const found = await seen.get(key)
  if (found === null || found === STORING) return 'busy'
  if (isOfNow(found, value)) return 'repeat'
  // Of several senders that find an outdated key, only the first may delete it; another could delete a new key.
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

/**
 * Marks keys as stored that an earlier run stored and may not have acknowledged. The shared state
 * may know them, with the epochs of that time.
 */
export async function rememberStored(
  seen: Pick<SeenKeys, 'get' | 'set'>,
  keys: readonly string[],
): Promise<void> {
  const remember = async (key: string): Promise<void> => {
    const found = await seen.get(key)
    if (found === null || found === STORING) await seen.set(key, STORED, WINDOW_MS)
  }
  await inTurns(keys, remember)
}

/**
 * Allows what was sent for these sources to be stored again, because their events are being
 * deleted.
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
