import { setTimeout as sleep } from 'node:timers/promises'

import { readContentCoding, type ContentCoding } from '../../http/decompress.js'
import { toErrorReply, type Reply } from '../../http/reply.js'
import type { BodyChunks } from '../../http/body-stream.js'
import { HeaderBag, type HttpRequest, type RequestHead } from '../../http/request.js'
import type { HttpRoute } from '../../http/routes.js'
import { AppError, ERRORS } from '../../model/errors.js'
import { INGEST_BYTES, type BodyFormat, type BodyResult } from '../block.js'
import { sourceProblem } from '../formats/draft.js'
import { onceKey, type Once } from '../once.js'
import { overloaded } from '../refusals.js'
import { keySubmission, type SenderKey, type Submission } from '../submission.js'
import { findKey, type KeyHead } from './key.js'
import type { BodySplitter } from './body-splitter.js'

/** The most records of a body, because millions of invalid one-character lines would be as many dead letters. */
export const INGEST_RECORDS = 500_000

/** The parts of a request that identify its sender. */
export type SenderHead = KeyHead & Pick<RequestHead, 'ip'>

/** The services that the request side of every protocol uses. */
export interface IngestServices {
  /** @returns null for an unknown key */
  readonly verifyKey: (key: string) => SenderKey | null
  /** Whether a verified key still exists. */
  readonly hasKey: (id: string) => boolean
  /** Resolves when keys that other instances have stored are known; absent for a single instance. */
  readonly current?: () => Promise<void>
  /** Whether the pipeline's memory limit allows another body of this size. */
  readonly hasRoom: (bytes: number, owner: string) => boolean
  /** Resolves when the accepted messages are durable. */
  readonly submit: (submission: Submission) => Promise<BodyResult>
  readonly once: Once
  /** Called for a key that does not exist. A request without a key does not count as an attempt. */
  readonly onWrongKey: (head: SenderHead) => void
  readonly version: string
  readonly isReady: () => boolean
}

/** A route of a protocol on which records are received. */
export interface IngestRoute {
  readonly id: string
  readonly method?: 'POST' | 'PUT'
  readonly path: string
  /** The protocol's name in metrics and dead letters. */
  readonly protocol: string
  readonly format: BodyFormat | ((head: RequestHead) => BodyFormat)
  /** The parameters of the request for the parser, as a query string. */
  readonly params?: (head: RequestHead) => string
  /**
   * Answers requests that need no worker, such as probes, without the pipeline.
   *
   * @returns null for others
   */
  readonly answer?: (request: HttpRequest) => Reply | null
  readonly toReply: (result: BodyResult, request: HttpRequest) => Reply
  /** Whether a body is stored even if its client has disconnected, because such clients read no reply and never retry. */
  readonly isOneWay?: true
  /** Stores an uncompressed body in parts while it arrives, so that it may have any length. */
  readonly parts?: { readonly split: () => BodySplitter; readonly reply: Reply }
  /** How long a request waits for memory before it is refused, for clients that retry at once or never. Default 0. */
  readonly patienceMs?: number
  /** Whether records of sources that the key may not write are rejected one by one, which the protocol's reply can express. */
  readonly deniesRecords?: boolean
  /**
   * Answers a request for which there is no memory, if the protocol's clients retry the records
   * that the reply names.
   *
   * @returns null when the request cannot be answered in this way
   */
  readonly toBusyReply?: (request: HttpRequest) => Reply | null
  /** Writes an error in the protocol's form. Default: that of `/ingest`. */
  readonly toErrorReply?: (error: AppError, head: RequestHead) => Reply
}

/**
 * Builds the route of a protocol. The decision to accept a request is made from its head alone:
 * key, content coding, source, memory. Then the body is submitted, and the reply is sent when the
 * accepted records are durable. A request with an `Idempotency-Key` is stored once in 300 seconds;
 * its copies get the same reply.
 */
export function ingestRoute(route: IngestRoute, services: IngestServices): HttpRoute {
  const { id, method = 'POST', path, toErrorReply: write } = route
  const admitBusy = createAdmitBusy(route)
  return {
    id,
    method,
    path,
    bodyBytes: INGEST_BYTES,
    isAddressless: true,
    ...(route.parts === undefined ? {} : { isStreamed }),
    admit: (head) => admit(head, { ...route, admitBusy }, services),
    ...(write === undefined ? {} : { toErrorReply: write }),
  }
}

const isStreamed = (headers: HeaderBag): boolean => readContentCoding(headers) === 'identity'

type Admitted = Extract<Awaited<ReturnType<HttpRoute['admit']>>, { kind: 'admitted' | 'streamed' }>

function admit(
  head: RequestHead,
  { admitBusy, ...route }: IngestRoute & { readonly admitBusy: AdmitBusy },
  services: IngestServices,
): Admitted | Promise<Admitted> {
  return withKey(head, services, (key) => {
    const coding = readContentCoding(head.headers)
    const source = namedSource(head)
    const bytes = Math.min(Number(head.headers.first('content-length') ?? 0), INGEST_BYTES)
    const handle = (request: HttpRequest): Reply | Promise<Reply> =>
      route.answer?.(request) ??
      orBusy(take(request, { key, coding, source }, route, services), request, route)
    const { parts } = route
    const admitted: Admitted =
      parts !== undefined && coding === 'identity'
        ? {
            kind: 'streamed',
            handle: (request, body) =>
              takeParts({ request, body, key, source }, { ...route, parts }, services),
          }
        : { kind: 'admitted', handle }
    const hasRoom = (): boolean => services.hasRoom(bytes, key.id)
    if (hasRoom()) return admitted
    if (route.patienceMs === undefined) throw overloaded()
    return untilRoom(hasRoom, route.patienceMs).then(
      () => admitted,
      (error: unknown) => admitBusy(error, head),
    )
  })
}

/** The limits of requests that are read only to be answered by `toBusyReply`. */
const BUSY = { bytes: 1024 * 1024, requests: 8 }

type AdmitBusy = (error: unknown, head: RequestHead) => Admitted

/** Admits small requests for which there is no memory, so that `toBusyReply` can answer them. It throws the error for others. */
function createAdmitBusy({ toBusyReply }: IngestRoute): AdmitBusy {
  let open = 0
  return (error, { headers, signal }) => {
    const bytes = Number(headers.first('content-length') ?? Infinity)
    if (toBusyReply === undefined || bytes > BUSY.bytes || open >= BUSY.requests) throw error
    let isOpen = true
    const end = (): void => {
      if (isOpen) open -= 1
      isOpen = false
    }
    open += 1
    signal.addEventListener('abort', end, { once: true })
    const handle = (request: HttpRequest): Reply => {
      end()
      const reply = toBusyReply(request)
      if (reply === null) throw error
      return reply
    }
    return { kind: 'admitted', handle }
  }
}

async function orBusy(
  reply: Promise<Reply>,
  request: HttpRequest,
  { toBusyReply }: IngestRoute,
): Promise<Reply> {
  if (toBusyReply === undefined) return await reply
  try {
    return await reply
  } catch (error) {
    const busy = error instanceof AppError && ERRORS[error.code].retry ? toBusyReply(request) : null
    if (busy === null) throw error
    return busy
  }
}

/** @throws AppError `overloaded` when there is no memory in time */
async function untilRoom(hasRoom: () => boolean, patienceMs: number): Promise<void> {
  for (const deadline = Date.now() + patienceMs; !hasRoom(); await sleep(WAIT_STEP_MS))
    if (Date.now() >= deadline) throw overloaded()
}

const WAIT_STEP_MS = 50

/**
 * Calls `decide` with the key of a request.
 *
 * @throws AppError `unauthorized`
 */
export function withKey<T>(
  head: SenderHead,
  { verifyKey, current, onWrongKey }: Pick<IngestServices, 'verifyKey' | 'current' | 'onWrongKey'>,
  decide: (key: SenderKey) => T | Promise<T>,
): T | Promise<T> {
  const { word, key } = findKey(head, verifyKey)
  if (key !== null) return decide(key)
  const refuse = (): AppError => {
    if (word === '') return new AppError('unauthorized', NO_KEY)
    onWrongKey(head)
    return unknownKey()
  }
  if (word === '' || current === undefined) throw refuse()
  // Another instance may have just created the key.
  return current().then(() => {
    const { key: known } = findKey(head, verifyKey)
    if (known === null) throw refuse()
    return decide(known)
  })
}

interface Taken {
  readonly request: Pick<HttpRequest, 'headers' | 'body' | 'isOver'>
  readonly key: SenderKey
  readonly coding: ContentCoding
  /** The source that the request names; '' for none. */
  readonly source: string
}

async function take(
  request: HttpRequest,
  taken: Omit<Taken, 'request'>,
  route: IngestRoute,
  services: IngestServices,
): Promise<Reply> {
  const result = await takeBody({ ...taken, request }, kindOf(route, request), services)
  return route.toReply(result, request)
}

/** The fields of a submission that its route decides. */
type BodyKind = Pick<Submission, 'protocol' | 'format' | 'params' | 'deniesRecords' | 'isAbandoned'>

const kindOf = (
  { protocol, format, params, deniesRecords = false, isOneWay }: IngestRoute,
  head: RequestHead,
): BodyKind => ({
  protocol,
  deniesRecords,
  ...(isOneWay === true ? { isAbandoned: () => false } : {}),
  format: typeof format === 'function' ? format(head) : format,
  ...(params === undefined ? {} : { params: params(head) }),
})

/** The approximate size of the parts of a long body. */
const PART_BYTES = 1024 * 1024
/** How long a part waits for memory, and its client with it. */
const PART_PATIENCE_MS = 20_000

interface Parts extends Pick<Taken, 'key' | 'source'> {
  readonly request: RequestHead
  readonly body: BodyChunks
}

/**
 * Submits a body part by part, each when the one before is durable.
 *
 * @throws AppError for a part that was refused; those before it are stored
 */
async function takeParts(
  { request, body, key, source }: Parts,
  route: IngestRoute & Required<Pick<IngestRoute, 'parts'>>,
  services: IngestServices,
): Promise<Reply> {
  const split = route.parts.split()
  const kind = kindOf(route, request)
  const submit = async (bytes: Buffer): Promise<void> => {
    await untilRoom(() => services.hasRoom(bytes.length, key.id), PART_PATIENCE_MS)
    const part = {
      // The `Idempotency-Key` of the request does not apply to a part.
      headers: new HeaderBag(),
      body: bytes,
      get isOver() {
        return request.isOver
      },
    }
    await takeBody({ request: part, key, source, coding: 'identity' }, kind, services)
  }
  for await (const chunk of body) {
    split.push(chunk)
    if (split.wholeBytes >= PART_BYTES) await submit(split.take())
    body.keep(split.heldBytes)
  }
  const rest = split.end()
  if (rest.length > 0) await submit(rest)
  return route.parts.reply
}

/**
 * Submits the body of a request.
 *
 * @returns when its accepted records are durable
 * @throws AppError for a body that was refused as a whole
 */
export async function takeBody(
  { request, key, coding, source }: Taken,
  of: BodyKind,
  services: Pick<IngestServices, 'hasKey' | 'submit' | 'once'>,
): Promise<BodyResult> {
  // The key was verified before the body arrived, which may have taken as long as the client liked.
  if (!services.hasKey(key.id)) throw unknownKey()
  const submission: Submission = {
    ...keySubmission(key),
    isAbandoned: () => request.isOver,
    ...of,
    bytes: request.body,
    coding,
    ...(source === '' ? {} : { requestSource: source, defaultSource: source }),
    maxRows: INGEST_RECORDS,
  }
  const result = await submitOnce(submission, onceKeyOf(request, key), services)
  throwRefusal(result)
  return result
}

/** @returns null for a request without an `Idempotency-Key` */
function onceKeyOf({ headers }: Pick<RequestHead, 'headers'>, { id }: SenderKey): string | null {
  const text = headers.first('idempotency-key') ?? ''
  return text === '' ? null : onceKey('request', id, text)
}

/** Submits a body unless it was stored before; in that case its records are only read for the reply. */
export async function submitOnce(
  submission: Submission,
  key: string | null,
  { submit, once }: Pick<IngestServices, 'submit' | 'once'>,
): Promise<BodyResult> {
  if (key === null) return await submit(submission)
  const claim = await once.claim([key], null)
  if (claim.isNew[0] !== true) return await submit({ ...submission, isRepeat: true })
  try {
    const result = await submit({ ...submission, onceKey: key })
    await (result.refusal === null ? claim.stored() : claim.release())
    return result
  } catch (error) {
    await claim.release()
    throw error
  }
}

const unknownKey = (): AppError =>
  new AppError('unauthorized', 'the ingest key is unknown, or was deleted')

/** @throws AppError for a body that was refused as a whole */
function throwRefusal({ refusal }: BodyResult): void {
  if (refusal === null) return
  if (refusal.code === 'file_parse_error')
    throw new AppError('body_too_large', `the body has more than ${INGEST_RECORDS} records`)
  const isTooLarge = refusal.code === 'body_too_large'
  const details = isTooLarge ? { limit_bytes: INGEST_BYTES } : {}
  throw new AppError(refusal.code, refusal.message, { details })
}

/**
 * The source that the request names; '' for none.
 *
 * @throws AppError `validation_error` for a name that no source may have
 */
export function namedSource({ queryText, query, headers }: KeyHead): string {
  const asked = queryText === '' ? '' : query.get('source')
  const named = asked || (headers.first('x-source') ?? '')
  if (named === '') return ''
  const problem = sourceProblem(named)
  if (problem !== null) throw new AppError('validation_error', problem.message)
  return named
}

/** Most clients retry after 503 with Retry-After; many drop the data after 429 or 500. */
export function laterReply(error: AppError): Reply {
  const reply = toErrorReply(error)
  return ERRORS[error.code].retry ? { ...reply, status: 503 } : reply
}

const NO_KEY = 'an ingest key is required in Authorization: Bearer or X-Api-Key'
