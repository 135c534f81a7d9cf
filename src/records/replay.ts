import { Type } from '@sinclair/typebox'

import type { Instance } from '../coordination/instance.js'
import type { DeadLetter, DeadLetterPosition, DeadLetterQuery } from '../model/dead-letter.js'
import type { DeadLetters } from './dead-letters.js'
import { MINUTE_MS } from '../model/time.js'

/**
 * The outcome of a replayed dead letter: its message is stored; it was rejected again, and is a new dead letter
 * with the new reason; or it stays as it is, because its source is disabled or its sender may not write it.
 */
export type ReplayOutcome = 'stored' | 'rejected' | 'kept'

export interface ReplayLine extends Pick<DeadLetter, 'id' | 'keyId' | 'source'> {
  /** A JSON object in one line, as `/ingest` takes it, or a text of `protocol`. */
  readonly line: string
  /** The protocol of a text; null for a JSON object. */
  readonly protocol: string | null
}

interface ReplayDeps extends Pick<Instance, 'withLock'> {
  readonly deadLetters: Pick<DeadLetters, 'page' | 'byIds'>
  readonly claims: ReplayClaims
  /**
   * Ingests each dead letter as a body of its own. The WAL record that stores or rejects it also deletes the dead
   * letter, so that a crash at any time leaves either the dead letter or its outcome, never both.
   *
   * @returns one outcome per dead letter, once they are durable
   */
  readonly resubmit: (lines: readonly ReplayLine[]) => Promise<readonly ReplayOutcome[]>
  /** Whether the records of a protocol are texts, which can be ingested again unchanged. */
  readonly hasTexts: (protocol: string) => boolean
  /** Resolves when everything in the WAL, including records of earlier runs, has taken effect in ClickHouse. */
  readonly settle: () => Promise<unknown>
}

export type ReplayRequest =
  | {
      readonly kind: 'ids'
      readonly ids: readonly number[]
      /** Records that replace what was sent, by the ids of their dead letters. */
      readonly edits?: ReadonlyMap<number, string>
    }
  | { readonly kind: 'all'; readonly query: Omit<DeadLetterQuery, 'limit'> }

export interface ReplayResult {
  readonly replayed: number
  readonly failed: number
  /**
   * The number of dead letters without raw text, with truncated raw text, deleted, of a disabled
   * source, of one that the sender's key may not write, or claimed by another instance.
   */
  readonly skipped: number
  /** The position to continue from; null when every dead letter was read. */
  readonly position: DeadLetterPosition | null
}

export interface Replay {
  /**
   * Replays dead letters by their ids, or all from the newest on, up to `MAX_REPLAYED` or for a minute. It is safe
   * to repeat after a failure: what was replayed is deleted.
   *
   * @throws AppError overloaded, dependency_unavailable; the reason of `signal`
   */
  run(request: ReplayRequest, signal: AbortSignal): Promise<ReplayResult>
}

/** The most dead letters that one call submits, and reads. */
export const MAX_REPLAYED = 10_000
const MAX_READ = 100_000
/** The longest time of a replay, half of what a call may take; the next call continues. */
const MAX_MS = MINUTE_MS
/** The dead letters that are read at once; each has up to 64 KiB. */
const PAGE = 250
/**
 * Dead letters are submitted together up to these limits. ClickHouse deletes them with a mutation or
 * two, whose time hardly depends on their number.
 */
const CHUNK = 2_500
const CHUNK_BYTES = 16 * 1024 * 1024
/** The bytes of a record that a dead letter keeps; a longer record is truncated, possibly within a character. */
const RAW_BYTES = 64 * 1024
const MAX_CHARACTER_BYTES = 4
/** Lease of the lock of deletions, which is renewed. */
const LOCK_MS = 15_000

export function createReplay(deps: ReplayDeps): Replay {
  return {
    run: (request, signal) =>
      deps.withLock('delete', LOCK_MS, async () => {
        // A dead letter whose deletion waits in the WAL must not be replayed again.
        await deps.settle()
        await deps.claims.release()
        const tally = new Tally()
        const position =
          request.kind === 'ids'
            ? await replayIds(deps, request, tally)
            : await replayAll(deps, request.query, { tally, signal })
        await deps.settle()
        await deps.claims.release()
        return { ...tally.counts(), position }
      }),
  }
}

class Tally {
  read = 0
  replayed = 0
  failed = 0
  skipped = 0
  readonly #endMs = performance.now() + MAX_MS

  /** How many may be submitted yet. */
  get left(): number {
    return MAX_REPLAYED - this.replayed - this.failed
  }

  get isFull(): boolean {
    const isMuch = this.left <= 0 || this.read >= MAX_READ
    return isMuch || performance.now() > this.#endMs
  }

  counts(): Omit<ReplayResult, 'position'> {
    return { replayed: this.replayed, failed: this.failed, skipped: this.skipped }
  }
}

async function replayIds(
  deps: ReplayDeps,
  { ids, edits }: Extract<ReplayRequest, { readonly kind: 'ids' }>,
  tally: Tally,
): Promise<null> {
  const distinct = [...new Set(ids)]
  let chunk: DeadLetter[] = []
  for (let from = 0; from < distinct.length; from += PAGE) {
    const some = distinct.slice(from, from + PAGE)
    const deadLetters = await deps.deadLetters.byIds(some)
    tally.skipped += some.length - deadLetters.length
    chunk.push(...deadLetters.map((one) => ({ ...one, raw: edits?.get(one.id) ?? one.raw })))
    if (!isWhole(chunk) && from + PAGE < distinct.length) continue
    await replayChunk(deps, chunk, tally)
    chunk = []
  }
  return null
}

const isWhole = (chunk: readonly DeadLetter[]): boolean =>
  chunk.length >= CHUNK || chunk.reduce((sum, { raw }) => sum + raw.length, 0) >= CHUNK_BYTES

interface Progress {
  readonly tally: Tally
  readonly signal: AbortSignal
}

async function replayAll(
  deps: ReplayDeps,
  query: Omit<DeadLetterQuery, 'limit'>,
  { tally, signal }: Progress,
): Promise<DeadLetterPosition | null> {
  let { after } = query
  // Pages move towards older dead letters; those that are rejected again are newer and are not read.
  let chunk: DeadLetter[] = []
  // What was read is submitted, because the next call begins after it.
  while (chunk.length > 0 || !tally.isFull) {
    signal.throwIfAborted()
    const page = await deps.deadLetters.page({ ...query, after, limit: PAGE })
    chunk.push(...page)
    const last = page.at(-1)
    if (last !== undefined) after = { receivedAtMs: last.receivedAtMs, id: last.id }
    const isLast = page.length < PAGE
    if (!isLast && !isWhole(chunk) && chunk.length < tally.left) continue
    await replayChunk(deps, chunk, tally)
    chunk = []
    if (isLast) return null
  }
  return after
}

async function replayChunk(
  deps: ReplayDeps,
  deadLetters: readonly DeadLetter[],
  tally: Tally,
): Promise<void> {
  const whole = deadLetters.flatMap((one) => toReplayLine(one, deps.hasTexts(one.protocol)))
  const free = new Set(whole.length === 0 ? [] : await deps.claims.claim(whole.map(({ id }) => id)))
  const lines = whole.filter(({ id }) => free.has(id))
  tally.read += deadLetters.length
  tally.skipped += deadLetters.length - lines.length
  if (lines.length === 0) return
  for (const outcome of await deps.resubmit(lines)) {
    if (outcome === 'stored') tally.replayed++
    else if (outcome === 'rejected') tally.failed++
    else tally.skipped++
  }
  // The next chunk is submitted when ClickHouse has stored this one.
  await deps.settle()
}

/** @returns an empty list when the dead letter has no complete record */
function toReplayLine(
  { id, keyId, source, raw, protocol }: DeadLetter,
  isText: boolean,
): readonly ReplayLine[] {
  const text = raw.trim()
  if (Buffer.byteLength(raw) > RAW_BYTES - MAX_CHARACTER_BYTES) return []
  const sender = { id, keyId, source }
  // JSON allows a line end only between tokens, where it equals a space.
  if (text.startsWith('{') && text.endsWith('}'))
    return [{ ...sender, line: text.replaceAll(/[\r\n]+/g, ' '), protocol: null }]
  // Any other record would be rejected again for the same reason.
  return isText && text !== '' ? [{ ...sender, line: raw, protocol }] : []
}

const ClaimDoc = Type.Object({ ids: Type.Array(Type.Number()) })

/** Records which dead letters an instance has in its WAL as new messages, so that the others do not replay them. */
export interface ReplayClaims {
  /** Claims dead letters for this instance. @returns those that no other instance has claimed */
  claim(ids: readonly number[]): Promise<readonly number[]>
  /** Releases all claims of this instance, whose messages are stored. */
  release(): Promise<void>
}

/** The claims of an instance outlive the process, as its WAL does. */
export function createReplayClaims({
  entities,
  self,
  isEmbedded,
}: Pick<Instance, 'entities' | 'self' | 'isEmbedded'>): ReplayClaims {
  if (isEmbedded) return noReplayClaims
  const claims = entities.collection('replay_claim', ClaimDoc)
  return {
    claim: async (ids) => {
      const others = new Set(
        claims.entries().flatMap(([instance, claim]) => (instance === self ? [] : claim.ids)),
      )
      const free = ids.filter((id) => !others.has(id))
      if (free.length > 0)
        await claims.update(self, (own) => ({ ids: [...(own?.ids ?? []), ...free] }))
      return free
    },
    release: async () => {
      await claims.remove(self)
    },
  }
}

/** The claims of a single instance. */
export const noReplayClaims: ReplayClaims = {
  claim: async (ids) => ids,
  release: async () => undefined,
}
