import type { ContentCoding } from '../http/decompress.js'
import { AppError } from '../model/errors.js'
import type { BodyResult, ProtocolFormat } from './block.js'
import { onceKey } from './once.js'
import { INGEST_RECORDS, submitOnce, type IngestServices } from './protocols/ingest-route.js'
import { overloaded } from './refusals.js'
import { keySubmission, type SenderKey } from './submission.js'

/** A batch of a listener: one or many records for one parser. */
export interface ListenerBody {
  /** The protocol in metrics and dead letters. */
  readonly protocol: string
  readonly format: ProtocolFormat
  /** The bytes; they must not change until the result is there. */
  readonly bytes: Uint8Array
  readonly coding?: ContentCoding
  /** The parameters of the connection for the parser, as a query string. */
  readonly params?: string
  /** The id by which the client repeats the body. Within 300 seconds it is stored once. */
  readonly onceId?: string
  /** Whether nobody waits for the result any more. */
  readonly isAbandoned?: () => boolean
}

/** Passes records of listeners without HTTP to the pipeline, with the rights of one ingest key. */
export interface Listeners {
  /** The key with whose rights the records are written. @returns null when there is no such key */
  readonly key: () => SenderKey | null
  /** Whether the pipeline's memory limit allows a network another body of this size. */
  readonly hasRoom: (bytes: number, network: string) => boolean
  /**
   * Resolves when the accepted records are durable.
   *
   * @param network of the sender: its share of the workers and of the memory is its own, not that of the key
   * @throws AppError `unauthorized` without a key, `overloaded` at the memory limit, `dependency_unavailable`
   */
  readonly submit: (body: ListenerBody, network: string) => Promise<BodyResult>
}

interface ListenerDeps extends Pick<IngestServices, 'hasRoom' | 'submit' | 'once'> {
  readonly key: () => SenderKey | null
}

/**
 * Clients of a listener present no key, so a flood of theirs must not use up the share of the
 * clients that send with LISTENER_KEY over HTTP.
 */
const ownerOf = (network: string): string => `listener ${network}`

export function createListeners({ key, ...services }: ListenerDeps): Listeners {
  const { hasRoom } = services
  return {
    key,
    hasRoom: (bytes, network) => key() !== null && hasRoom(bytes, ownerOf(network)),
    submit: async (body, network) => {
      const own = key()
      if (own === null) throw new AppError('unauthorized', 'no ingest key is LISTENER_KEY')
      const owner = ownerOf(network)
      if (!hasRoom(body.bytes.byteLength, owner)) throw overloaded()
      const { onceId, coding = 'identity', ...rest } = body
      const submission = {
        ...keySubmission(own),
        ...rest,
        owner,
        coding,
        maxRows: INGEST_RECORDS,
        deniesRecords: true,
      }
      const claimed = onceId === undefined ? null : onceKey(body.protocol, own.id, onceId)
      return await submitOnce(submission, claimed, services)
    },
  }
}
