import type { ContentCoding } from '../http/decompress.js'
import { AppError } from '../model/errors.js'
import type { BodyResult, ProtocolFormat } from './block.js'
import { onceKey, type Once } from './once.js'
import { INGEST_RECORDS, submitOnce } from './protocols/ingest-route.js'
import { overloaded } from './refusals.js'
import { keySubmission, type SenderKey, type Submission } from './submission.js'

/** What a listener read from its clients: one or many records that one parser reads. */
export interface ListenerBody {
  /** As metrics and dead letters name it. */
  readonly protocol: string
  readonly format: ProtocolFormat
  /** Not written any more until the result is there. */
  readonly bytes: Uint8Array
  readonly coding?: ContentCoding
  /** What the parser reads of the connection, as a query string. */
  readonly params?: string
  /** The id by which the client repeats the body; it is stored once in 300 seconds. */
  readonly onceId?: string
  /** Whether nobody waits for the result any more. */
  readonly isAbandoned?: () => boolean
}

/** The way in for listeners without HTTP. Their records are written with the rights of one ingest key. */
export interface Listeners {
  /** The key of the listeners that know none. @returns null when there is no such key */
  readonly key: () => SenderKey | null
  /** Whether the pipeline's memory limit allows another body of this size; asked before it is read. */
  readonly hasRoom: (bytes: number, key?: SenderKey) => boolean
  /**
   * Resolves when the accepted records are durable.
   *
   * @param key of a client that named one; else that of the listeners
   * @throws AppError `unauthorized` without a key, `overloaded` at the memory limit, `dependency_unavailable`
   */
  readonly submit: (body: ListenerBody, key?: SenderKey) => Promise<BodyResult>
}

interface ListenerDeps {
  readonly key: () => SenderKey | null
  readonly pipeline: {
    hasRoom(bytes: number, owner: string): boolean
    submit(submission: Submission): Promise<BodyResult>
  }
  readonly once: Once
}

export function createListeners({ key, pipeline, once }: ListenerDeps): Listeners {
  const services = { submit: (body: Submission) => pipeline.submit(body), once }
  return {
    key,
    hasRoom: (bytes, own = key() ?? undefined) =>
      own !== undefined && pipeline.hasRoom(bytes, own.id),
    submit: async (body, own = key() ?? undefined) => {
      if (own === undefined) throw new AppError('unauthorized', 'no ingest key is LISTENER_KEY')
      if (!pipeline.hasRoom(body.bytes.byteLength, own.id)) throw overloaded()
      const { onceId, coding = 'identity', ...rest } = body
      const submission = {
        ...keySubmission(own),
        ...rest,
        coding,
        maxRows: INGEST_RECORDS,
        deniesRecords: true,
      }
      const claimed = onceId === undefined ? null : onceKey(body.protocol, own.id, onceId)
      return await submitOnce(submission, claimed, services)
    },
  }
}
