import type { ContentCoding } from '../http/decompress.js'
import { AppError } from '../model/errors.js'
import type { CanonicalEvent } from '../model/event.js'
import type { Command, LogRecord, Registration } from '../wal/record.js'
import type { BodyFormat, BodyResult, BodyTask } from './block.js'
import { NO_VERDICTS } from './verdicts.js'

/** The messages of one request, with the permissions of its sender. */
export interface Submission {
  /** Whose share of the workers and of the memory it takes. */
  readonly owner: string
  readonly format: BodyFormat
  readonly bytes: Uint8Array | null
  readonly coding: ContentCoding
  readonly events: readonly CanonicalEvent[] | null
  readonly protocol: string
  readonly source: string | null
  /** The ingest key of the sender; '' without one. */
  readonly keyId: string
  readonly defaultSource: string
  readonly requestSource?: string
  readonly params?: string
  readonly isRepeat?: boolean
  /** The key under which it is stored once; kept with its rows, as those of its records, so that a restart knows it. */
  readonly onceKey?: string
  /** Records of sources that the sender may not write are rejected one by one. */
  readonly deniesRecords?: boolean
  readonly allowedSources: readonly string[] | null
  readonly keepRaw: boolean
  readonly maxRows: number
  readonly timeZone?: string
  /** Id of the replayed dead letter. The WAL record of the message also deletes it, unless the message is dropped. */
  readonly replays: number | null
  /** How new sources are registered; null = their messages become dead letters. */
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

/** Limit of rows in an uploaded file. */
const UPLOAD_ROWS = 200_000

export interface UploadedFile {
  readonly format: 'csv' | 'json' | 'txt'
  readonly bytes: Uint8Array
  readonly source: string
  readonly applicationId: string | null
  readonly timeZone?: string | undefined
}

/** Makes the submission of an uploaded file, whose dead letters have no raw text. */
export const uploadSubmission = ({
  format,
  bytes,
  source,
  applicationId,
  timeZone,
}: UploadedFile): Submission => ({
  owner: 'uploads',
  format,
  bytes,
  coding: 'identity',
  events: null,
  protocol: 'upload',
  source,
  keyId: '',
  defaultSource: source,
  allowedSources: null,
  keepRaw: false,
  maxRows: UPLOAD_ROWS,
  ...(timeZone === undefined ? {} : { timeZone }),
  replays: null,
  register: { type: 'file', connector: 'custom', applicationId },
})

/** What the sender of a dead letter may do when it is replayed. */
type ReplayScope = Pick<Submission, 'keyId' | 'defaultSource' | 'allowedSources' | 'register'>

/** How the source of a message with an ingest key, or of one that is replayed, is registered. */
const PUSHED = { type: 'push', connector: 'custom', applicationId: null } as const

/**
 * Whoever sends a rejected record must not get, by its replay, what his key may not do: the rights are those that the key has
 * now. Without a key, or when it is deleted, the record may be of the source that the dead letter names.
 */
export function replayScope(
  { keyId, source }: { readonly keyId: string; readonly source: string },
  key: Omit<SenderKey, 'id'> | null,
): ReplayScope {
  // The dead letter of a record without a source has that of its request.
  const defaultSource = source === '' ? (key?.defaultSource ?? DEFAULT_SOURCE) : source
  return key === null
    ? { keyId, defaultSource, allowedSources: [source], register: PUSHED }
    : {
        keyId,
        defaultSource,
        allowedSources: key.sources,
        register: key.autoRegister ? PUSHED : null,
      }
}

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

/** What an ingest key allows. */
export interface SenderKey {
  readonly id: string
  /** Null = any. */
  readonly sources: readonly string[] | null
  readonly autoRegister: boolean
  /** The source of records that name none; null = `default`. */
  readonly defaultSource: string | null
}

interface Replayed {
  /** Of the dead letter. */
  readonly id: number
  /** Of its text; null for a JSON object. */
  readonly protocol: string | null
  readonly body: Pick<Submission, 'format' | 'bytes'>
}

/** Replays one dead letter as a body of its own. One that its sender may not write is kept. */
export async function resubmit(
  { id, protocol, body }: Replayed,
  scope: ReplayScope,
  pipeline: { submit(submission: Submission): Promise<BodyResult> },
): Promise<'stored' | 'rejected' | 'kept'> {
  const submission: Submission = {
    owner: 'replays',
    ...body,
    coding: 'identity',
    events: null,
    // What is rejected again can be replayed again.
    protocol: protocol ?? 'replay',
    source: null,
    ...scope,
    keepRaw: true,
    maxRows: 1,
    replays: id,
  }
  try {
    const result = await pipeline.submit(submission)
    if (result.accepted > 0) return 'stored'
    return result.rejected > 0 ? 'rejected' : 'kept'
  } catch (error) {
    if (error instanceof AppError && error.code === 'source_not_allowed') return 'kept'
    throw error
  }
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

/** How many messages of the bodies are stored or dead letters. What a repeated body rejects is a dead letter already. */
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

/** What the WAL record of a task says beside its rows. */
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
