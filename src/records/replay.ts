import type { DeadLetter, DeadLetterPosition, DeadLetterQuery } from '../model/dead-letter.js'
import { MINUTE_MS } from '../model/time.js'

/**
 * What became of a letter: its message is stored; it was refused again, and is a new dead letter with
 * the reason of today; or it was left as it is (its source is disabled).
 */
export type ReplayOutcome = 'stored' | 'rejected' | 'kept'

export interface ReplayLetter {
  readonly id: number
  /** one line: a JSON object as `/ingest` takes it */
  readonly line: string
}

export interface ReplayParts {
  readonly letters: {
    page(query: DeadLetterQuery, signal?: AbortSignal): Promise<readonly DeadLetter[]>
    byIds(ids: readonly number[], signal?: AbortSignal): Promise<readonly DeadLetter[]>
  }
  /**
   * Durably notes that letters are replayed by this instance.
   *
   * @returns those that wait in no other instance's wal, as one that died in the middle may have left them
   */
  readonly claim: (ids: readonly number[]) => Promise<readonly number[]>
  /** Everything claimed here, by earlier runs too, has taken effect. */
  readonly release: () => Promise<void>
  /**
   * Takes each letter through ingestion as a body of its own. In the same durable step in which a
   * letter is stored or rejected, its deletion is recorded, so that a crash at any moment leaves
   * either the letter or its outcome, never both.
   *
   * @returns one outcome per letter, once they are durable
   */
  readonly resubmit: (letters: readonly ReplayLetter[]) => Promise<readonly ReplayOutcome[]>
  /** Resolves when all that was made durable, by earlier runs too, has taken effect in ClickHouse. */
  readonly settle: () => Promise<unknown>
  /** Runs `work` while nothing is replayed or deleted elsewhere. */
  readonly exclusive: <T>(work: () => Promise<T>) => Promise<T>
}

export type ReplayRequest =
  | { readonly kind: 'ids'; readonly ids: readonly number[] }
  | { readonly kind: 'all'; readonly query: Omit<DeadLetterQuery, 'limit'> }

export interface ReplayResult {
  readonly replayed: number
  readonly failed: number
  /** nothing to replay: no raw text, cut raw text, no such letter, a disabled source, another instance has it */
  readonly skipped: number
  /** where to go on; null when every letter was looked at */
  readonly position: DeadLetterPosition | null
}

export interface Replay {
  /**
   * Replays the letters of some ids, or all from the newest on, up to `MAX_REPLAYED` or for a minute. After a
   * failure midway it is safe to repeat: what was replayed is gone.
   *
   * @throws AppError overloaded, dependency_unavailable; the reason of `signal`
   */
  run(request: ReplayRequest, signal: AbortSignal): Promise<ReplayResult>
}

/** Letters submitted, and looked at, by one call. */
export const MAX_REPLAYED = 10_000
const MAX_SEEN = 100_000
/** half of what a call may take: the rest is the next call's */
const LONG_MS = MINUTE_MS
/** held in memory at once; each has up to 64 KiB */
const CHUNK = 250
/** the collector keeps this much of a record; what is that long may have been cut within a character */
const RAW_BYTES = 64 * 1024
const MAX_CHARACTER_BYTES = 4

export function createReplay(parts: ReplayParts): Replay {
  return {
    run: (request, signal) =>
      parts.exclusive(async () => {
        // a letter whose deletion waits in the WAL must not be read, and so replayed, again
        await parts.settle()
        await parts.release()
        const tally = new Tally()
        const position =
          request.kind === 'ids'
            ? await replayIds(parts, request.ids, tally)
            : await replayAll(parts, request.query, { tally, signal })
        await parts.settle()
        await parts.release()
        return { ...tally.counts(), position }
      }),
  }
}

class Tally {
  seen = 0
  replayed = 0
  failed = 0
  skipped = 0
  readonly #endMs = performance.now() + LONG_MS

  get isFull(): boolean {
    const isMuch = this.replayed + this.failed >= MAX_REPLAYED || this.seen >= MAX_SEEN
    return isMuch || performance.now() > this.#endMs
  }

  counts(): Omit<ReplayResult, 'position'> {
    return { replayed: this.replayed, failed: this.failed, skipped: this.skipped }
  }
}

async function replayIds(parts: ReplayParts, ids: readonly number[], tally: Tally): Promise<null> {
  const distinct = [...new Set(ids)]
  for (let from = 0; from < distinct.length; from += CHUNK) {
    const some = distinct.slice(from, from + CHUNK)
    const letters = await parts.letters.byIds(some)
    tally.skipped += some.length - letters.length
    await replayChunk(parts, letters, tally)
  }
  return null
}

interface Progress {
  readonly tally: Tally
  readonly signal: AbortSignal
}

async function replayAll(
  parts: ReplayParts,
  query: Omit<DeadLetterQuery, 'limit'>,
  { tally, signal }: Progress,
): Promise<DeadLetterPosition | null> {
  let { after } = query
  // the keyset moves towards older letters: those that fail again are newer and are not met
  while (!tally.isFull) {
    signal.throwIfAborted()
    const letters = await parts.letters.page({ ...query, after, limit: CHUNK })
    await replayChunk(parts, letters, tally)
    const last = letters.at(-1)
    if (last === undefined || letters.length < CHUNK) return null
    after = { receivedAtMs: last.receivedAtMs, id: last.id }
  }
  return after
}

async function replayChunk(
  parts: ReplayParts,
  letters: readonly DeadLetter[],
  tally: Tally,
): Promise<void> {
  const whole = letters.flatMap(toReplayLetter)
  const free = new Set(whole.length === 0 ? [] : await parts.claim(whole.map(({ id }) => id)))
  const lines = whole.filter(({ id }) => free.has(id))
  tally.seen += letters.length
  tally.skipped += letters.length - lines.length
  if (lines.length === 0) return
  for (const outcome of await parts.resubmit(lines)) {
    if (outcome === 'stored') tally.replayed++
    else if (outcome === 'rejected') tally.failed++
    else tally.skipped++
  }
  // no more is sent than ClickHouse takes in time
  await parts.settle()
}

/** None when the letter holds no whole record. */
function toReplayLetter({ id, raw }: DeadLetter): readonly ReplayLetter[] {
  const text = raw.trim()
  // what is no JSON object would be refused for the same reason as before
  if (!text.startsWith('{') || !text.endsWith('}')) return []
  if (Buffer.byteLength(raw) > RAW_BYTES - MAX_CHARACTER_BYTES) return []
  // outside of strings a line end is a blank, and inside of one it cannot stand
  return [{ id, line: text.replaceAll(/[\r\n]+/g, ' ') }]
}
