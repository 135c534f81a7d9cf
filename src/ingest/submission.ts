import type { ContentCoding } from '../http/decompress.js'
import type { CanonicalEvent } from '../model/event.js'
import type { Command, Registration } from '../wal/record.js'
import type { BodyFormat, BodyResult, BodyTask } from './block.js'

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
  readonly allowedSources: readonly string[] | null
  readonly keepRaw: boolean
  readonly maxRows: number
  /** Id of the replayed dead letter. The WAL record of the message also deletes it, unless the message is dropped. */
  readonly replays: number | null
  /** How new sources are registered; null = their messages become dead letters. */
  readonly register: Omit<Registration, 'name'> | null
  /** Whether nobody waits for the result any more; such a body is not encoded. */
  readonly isAbandoned?: () => boolean
}

/** One shared object, because `packTask` joins bodies with identical verdicts. */
const NO_VERDICTS = Object.freeze({})

export const toBody = (submission: Submission): BodyTask => ({
  format: submission.format,
  bytes: submission.bytes,
  coding: submission.coding,
  events: submission.events,
  protocol: submission.protocol,
  source: submission.source,
  allowedSources: submission.allowedSources,
  keepRaw: submission.keepRaw,
  maxRows: submission.maxRows,
  verdicts: NO_VERDICTS,
})

/** Limit of rows in an uploaded file. */
const UPLOAD_ROWS = 200_000

export interface UploadedFile {
  readonly format: 'csv' | 'json' | 'txt'
  readonly bytes: Uint8Array
  readonly source: string
  readonly applicationId: string | null
}

/** Makes the submission of an uploaded file, whose dead letters have no raw text. */
export const uploadSubmission = ({
  format,
  bytes,
  source,
  applicationId,
}: UploadedFile): Submission => ({
  owner: 'uploads',
  format,
  bytes,
  coding: 'identity',
  events: null,
  protocol: 'upload',
  source,
  allowedSources: null,
  keepRaw: false,
  maxRows: UPLOAD_ROWS,
  replays: null,
  register: { type: 'file', connector: 'custom', applicationId },
})

/** Replays one dead letter as a body of its own. An unknown source is registered. */
export async function resubmit(
  { id, line }: { readonly id: number; readonly line: string },
  pipeline: { submit(submission: Submission): Promise<BodyResult> },
): Promise<'stored' | 'rejected' | 'kept'> {
  const result = await pipeline.submit({
    owner: 'replays',
    format: 'ingest',
    bytes: new TextEncoder().encode(line),
    coding: 'identity',
    events: null,
    protocol: 'replay',
    source: null,
    allowedSources: null,
    keepRaw: true,
    maxRows: 1,
    replays: id,
    register: { type: 'push', connector: 'custom', applicationId: null },
  })
  if (result.accepted > 0) return 'stored'
  return result.rejected > 0 ? 'rejected' : 'kept'
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
