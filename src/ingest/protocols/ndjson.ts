import { readContentCoding, type ContentCoding } from '../../http/decompress.js'
import type { HttpRequest, HeaderBag, RequestHead } from '../../http/request.js'
import type { Reply } from '../../http/reply.js'
import { INGEST_BYTES, type RefusalCode } from '../block.js'
import type { HttpRoute } from '../../http/routes.js'
import { AppError } from '../../model/errors.js'
import { sourceProblem } from '../formats/draft.js'
import { DEFAULT_SOURCE, type SenderKey } from '../submission.js'

/** Limit of records in one body, because millions of invalid one-character lines would be as many dead letters. */
export const INGEST_RECORDS = 500_000

interface IngestKey extends SenderKey {
  readonly id: string
}

export interface IngestBody {
  readonly format: 'ingest' | 'text'
  readonly bytes: Uint8Array
  readonly coding: ContentCoding
  /** The source of records that name none. */
  readonly defaultSource: string
  /** Whether the client is gone or has got its reply. */
  readonly isAbandoned: () => boolean
}

interface IngestResult {
  readonly received: number
  readonly accepted: number
  readonly rejected: number
  readonly dropped: number
  readonly errors: readonly {
    readonly line: number
    readonly code: string
    readonly message: string
  }[]
  readonly refusal: {
    readonly code: RefusalCode
    readonly message: string
  } | null
}

export interface IngestServices {
  /** @returns null for an unknown key */
  readonly verifyKey: (key: string) => IngestKey | null
  /** Resolves when the keys that other instances have stored are known; absent for a single instance. */
  readonly current?: () => Promise<void>
  /** Whether the pipeline's memory limit allows another body of this size. */
  readonly hasRoom: (bytes: number, key: IngestKey) => boolean
  /** Resolves when the accepted messages are durable. */
  readonly ingest: (body: IngestBody, key: IngestKey) => Promise<IngestResult>
  /** Called for a key that is none; a request without a key is no attempt. */
  readonly onWrongKey: (head: RequestHead) => void
  readonly version: string
  readonly isReady: () => boolean
}

const keyOf = (headers: HeaderBag): string => {
  const bearer = /^bearer +(\S+) *$/i.exec(headers.first('authorization') ?? '')?.[1]
  return bearer ?? headers.first('x-api-key') ?? ''
}

/**
 * The source that the request names for records without one.
 *
 * @throws AppError `validation_error` for a name that no source may have
 */
function namedSource({ queryText, query, headers }: RequestHead): string | null {
  const asked = queryText === '' ? null : query.get('source')
  const named = asked ?? headers.first('x-source') ?? ''
  if (named === '') return null
  const problem = sourceProblem(named)
  if (problem !== null) throw new AppError('validation_error', problem.message)
  return named
}

const unauthorized = (): AppError =>
  new AppError('unauthorized', 'an ingest key is required in Authorization: Bearer or X-Api-Key')

const overloaded = (): AppError =>
  new AppError('overloaded', 'the service takes no more events right now', { retryAfterS: 1 })

type Admitted = Extract<Awaited<ReturnType<HttpRoute['admit']>>, { kind: 'admitted' }>

function admit(head: RequestHead, services: IngestServices): Admitted | Promise<Admitted> {
  const text = keyOf(head.headers)
  const key = services.verifyKey(text)
  const mayBeNew = key === null && text !== '' && services.current !== undefined
  const refuse = (): AppError => {
    if (text !== '') services.onWrongKey(head)
    return unauthorized()
  }
  if (key === null && !mayBeNew) throw refuse()
  const coding = readContentCoding(head.headers)
  const named = namedSource(head)
  const isText = /^\s*text\/plain\b/i.test(head.headers.first('content-type') ?? '')
  const bytes = Math.min(Number(head.headers.first('content-length') ?? 0), INGEST_BYTES)
  const decide = (known: IngestKey | null): Admitted => {
    if (known === null) throw refuse()
    if (!services.hasRoom(bytes, known)) throw overloaded()
    const handle = (request: HttpRequest): Promise<Reply> => {
      const defaultSource = named ?? known.defaultSource ?? DEFAULT_SOURCE
      const isAbandoned = (): boolean => request.isOver
      const format = isText ? 'text' : 'ingest'
      const body = { format, bytes: request.body, coding, defaultSource, isAbandoned } as const
      return services.ingest(body, known).then(toReply)
    }
    return { kind: 'admitted', handle }
  }
  if (key !== null || services.current === undefined) return decide(key)
  // Another instance may have just created the key.
  return services.current().then(() => decide(services.verifyKey(text)))
}

function toReply(result: IngestResult): Reply {
  const { refusal } = result
  if (refusal?.code === 'file_parse_error')
    throw new AppError('body_too_large', `the body has more than ${INGEST_RECORDS} records`)
  if (refusal?.code === 'body_too_large')
    throw new AppError(refusal.code, refusal.message, { details: { limit_bytes: INGEST_BYTES } })
  if (refusal !== null) throw new AppError(refusal.code, refusal.message)
  const { received, accepted, rejected, dropped, errors } = result
  if (accepted === 1 && received === 1) return ONE_ACCEPTED
  return { status: 202, json: { received, accepted, rejected, dropped, errors } }
}

/** The reply to a request with one event. */
const ONE_ACCEPTED: Reply = {
  status: 202,
  jsonText: JSON.stringify({ received: 1, accepted: 1, rejected: 0, dropped: 0, errors: [] }),
}

/**
 * The collector's own protocol: `POST /ingest` takes NDJSON, a JSON array, JSON objects, or text lines. A request is admitted by its
 * head (key, content coding, size), submitted to the pipeline, and answered with the counts once the messages are durable.
 */
export function ingestRoutes(services: IngestServices): HttpRoute[] {
  return [
    {
      id: 'ingest',
      method: 'POST',
      path: '/ingest',
      bodyBytes: INGEST_BYTES,
      isAddressless: true,
      admit: (head) => admit(head, services),
    },
    {
      id: 'collectorHealth',
      method: 'GET',
      path: '/health',
      bodyBytes: 0,
      admit: () => ({
        kind: 'admitted',
        handle: () => {
          const ready = services.isReady()
          const status = ready ? 'ok' : 'down'
          return { status: ready ? 200 : 503, json: { status, version: services.version } }
        },
      }),
    },
  ]
}
