import type { Command, LogRecord, Registration } from '../wal/record.js'
import type { BodyResult, BodyTask } from './block.js'
import { NO_VERDICTS } from './verdicts.js'

/** Properties of a body that are known once its sources and records are looked up. */
type SetLater = 'verdicts' | 'repeats'
/** Properties of a body that have a default. */
type Optional = 'requestSource' | 'params' | 'isRepeat' | 'deniesRecords'

/** The messages of one request, with the permissions of its sender. */
export interface Submission
  extends Omit<BodyTask, SetLater | Optional | 'timeZone'>, Partial<Pick<BodyTask, Optional>> {
  /** The owner to whose share of workers and memory it counts. */
  readonly owner: string
  /**
   * The key under which the submission is stored once (`once.ts`). It is kept with its rows, like
   * those of its records, so that a restart knows it.
   */
  readonly onceKey?: string
  /** The zone of times without one; absent: that of the service. */
  readonly timeZone?: string
  /** Id of the replayed dead letter. The WAL record of the message also deletes it, unless the message is dropped. */
  readonly replays: number | null
  /** How new sources are registered; null when their messages become dead letters. */
  readonly register: Omit<Registration, 'name' | 'keyId'> | null
  /** Whether nobody waits for the result any more; such a body is not encoded. */
  readonly isAbandoned?: () => boolean
}

const NO_REPEATS: ReadonlySet<string> = new Set()

export const toBody = (submission: Submission): BodyTask => ({
  format: submission.format,
  bytes: submission.bytes,
  coding: submission.coding,
  events: submission.events,
  protocol: submission.protocol,
  source: submission.source,
  keyId: submission.keyId,
  defaultSource: submission.defaultSource,
  requestSource: submission.requestSource ?? '',
  params: submission.params ?? '',
  isRepeat: submission.isRepeat ?? false,
  deniesRecords: submission.deniesRecords ?? false,
  allowedSources: submission.allowedSources,
  keepRaw: submission.keepRaw,
  maxRows: submission.maxRows,
  timeZone: submission.timeZone ?? null,
  verdicts: NO_VERDICTS,
  repeats: NO_REPEATS,
})

/** The source of records that name none, when neither their request nor their key does. */
export const DEFAULT_SOURCE = 'default'

/** How the source of a message with an ingest key, or of a replayed one, is registered. */
export const PUSHED = { type: 'push', connector: 'custom', applicationId: null } as const

/** The fields of a submission that the sender's key decides. */
export const keySubmission = (key: SenderKey) =>
  ({
    owner: key.id,
    events: null,
    source: null,
    keyId: key.id,
    defaultSource: key.defaultSource ?? DEFAULT_SOURCE,
    allowedSources: key.sources,
    keepRaw: true,
    replays: null,
    register: key.autoRegister ? PUSHED : null,
  }) as const satisfies Partial<Submission>

/** The rights of an ingest key. */
export interface SenderKey {
  readonly id: string
  /** Null = any. */
  readonly sources: readonly string[] | null
  readonly autoRegister: boolean
  /** The source of records that name none; null = `default`. */
  readonly defaultSource: string | null
}

/** The counts of bodies with the same protocol and sources. */
export interface AcceptedBodies {
  readonly protocol: string
  /** Distinct sources of the accepted messages. */
  readonly sources: readonly string[]
  received: number
  accepted: number
  rejected: number
  dropped: number
  bytes: number
}

/**
 * Sums the counts of the bodies of a task. Bodies of one source share their list of sources, so a task of small
 * bodies has few sums.
 *
 * @param jobs one for each body, in order
 */
export function sumsOf(
  jobs: readonly { readonly submission: Pick<BodyTask, 'protocol'> }[],
  bodies: readonly BodyResult[],
): readonly AcceptedBodies[] {
  const bySources = new Map<readonly string[], AcceptedBodies>()
  const sums: AcceptedBodies[] = []
  jobs.forEach(({ submission: { protocol } }, i) => {
    const body = bodies[i]
    if (body === undefined) return
    const { sources, received, accepted, rejected, dropped, bytes } = body
    let sum = bySources.get(sources)
    if (sum?.protocol !== protocol) {
      sum = { protocol, sources, received: 0, accepted: 0, rejected: 0, dropped: 0, bytes: 0 }
      bySources.set(sources, sum)
      sums.push(sum)
    }
    sum.received += received
    sum.accepted += accepted
    sum.rejected += rejected
    sum.dropped += dropped
    sum.bytes += bytes
  })
  return sums
}

/**
 * The number of messages of the bodies that are stored or dead letters. Rejections of a repeated
 * body are dead letters already.
 */
export const keptOf = (
  bodies: readonly Pick<BodyTask, 'isRepeat'>[],
  results: readonly BodyResult[],
): number =>
  results.reduce(
    (sum, { accepted, rejected }, i) =>
      sum + accepted + (bodies[i]?.isRepeat === true ? 0 : rejected),
    0,
  )

/** Returns the command that deletes the dead letters that were stored or rejected again; null when there are none. */
export function deletionOf(
  jobs: readonly { readonly submission: { readonly replays: number | null } }[],
  bodies: readonly BodyResult[],
): Command | null {
  const ids = jobs.flatMap(({ submission: { replays } }, i) => {
    const body = bodies[i]
    const settled = body !== undefined && body.accepted + body.rejected > 0
    return replays !== null && settled ? [replays] : []
  })
  return ids.length === 0 ? null : { kind: 'delete-dead-letters', ids }
}

/** The parts of a task's WAL record beside its rows. */
export function ordersOf(
  jobs: readonly { readonly submission: Pick<Submission, 'replays' | 'onceKey'> }[],
  bodies: readonly BodyResult[],
): Pick<LogRecord, 'command' | 'onceKeys' | 'atMs'> {
  const onceKeys = [
    ...jobs.flatMap(({ submission: { onceKey } }) => onceKey ?? []),
    ...bodies.flatMap(({ ids }) => ids),
  ]
  const command = deletionOf(jobs, bodies)
  return onceKeys.length === 0 ? { command } : { command, onceKeys, atMs: Date.now() }
}
