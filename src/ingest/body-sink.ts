import { isUtf8 } from 'node:buffer'

import {
  SEVERITIES,
  type CanonicalEvent,
  type DecodeContext,
  type EventSink,
  type Rejection,
} from '../model/event.js'
import type { DeadLetterEncoder } from '../writer/dead-letter-encoder.js'
import type { Admission, BlockEncoder } from './block-encoder.js'
import { isOfProtocol, type BodyTask, type LineError } from './block.js'
import { UTC } from './formats/zone.js'
import { onceKey } from './once.js'
import type { Member, ProtobufForm, RecordTaker, SyslogMessages } from './record-rows.js'
import type { ReplyWriter } from './protocols/protocol.js'
import { verdictOf } from './verdicts.js'

/** The most errors in a reply. */
const REPORTED_ERRORS = 20
/** The most sources of one body, each of which the main thread checks. It is the number that a key may register by default. */
const SOURCES_PER_BODY = 10_000
const INFO = SEVERITIES.indexOf('INFO')

export interface BodyEncoders {
  readonly block: BlockEncoder
  readonly dead: DeadLetterEncoder
}

/** Adds the messages of one body to the block or to the dead letters, and counts them. */
export class BodySink implements EventSink, RecordTaker {
  readonly #encoders: BodyEncoders
  readonly #body: BodyTask
  readonly #errors: LineError[] = []
  readonly #sources = new Set<string>()
  #accepted = 0
  #rejected = 0
  #dropped = 0
  /** The number of lines that are not JSON. */
  #unreadable = 0
  /** The first source that the body's key may not write. */
  denied: string | null = null
  /** The ids of the accepted records, by which their sender may repeat them. */
  readonly #ids: string[] = []
  /** The ids of the records of all bodies of the block. */
  readonly #blockIds: Set<string>
  #nextId: string | null = null
  /** Writes the reply; null for a protocol whose replies name no records. */
  replyWriter: ReplyWriter | null = null

  /** @param blockIds the ids of the records of the block, to which those of the body are added */
  constructor(encoders: BodyEncoders, body: BodyTask, blockIds: Set<string>) {
    this.#encoders = encoders
    this.#body = body
    this.#blockIds = blockIds
  }

  /** Whether the block or the dead letters contain part of the body. */
  get isTouched(): boolean {
    return this.#accepted + this.#rejected > 0
  }

  /** Whether no line of the body is JSON. */
  get isUnreadable(): boolean {
    return (
      this.#unreadable > 0 &&
      this.#unreadable === this.#rejected &&
      this.#accepted + this.#dropped === 0
    )
  }

  begin(bytes: Uint8Array, context: DecodeContext): boolean {
    if (context.source !== null || this.#body.isRepeat) return false
    this.#encoders.block.beginBody(
      bytes,
      { ...context, isUtf8: isUtf8(bytes), isUtc: context.toUtc === UTC },
      (source) => this.#admit(source),
    )
    return true
  }

  take(from: number, most: number): { readonly next: number; readonly taken: number } {
    const { next, accepted, dropped } = this.#encoders.block.readLines(from, most)
    this.#accepted += accepted
    this.#dropped += dropped
    if (accepted > 0) this.#keepId(this.#nextId)
    if (accepted + dropped > 0) this.#nextId = null
    return { next, taken: accepted + dropped }
  }

  setHead(from: number, to: number, no: number, source: string): void {
    this.#encoders.block.setHead(from, to, no, source)
  }

  takeHeaded(from: number, most: number): { readonly next: number; readonly heads: Uint32Array } {
    const { next, accepted, dropped, heads } = this.#encoders.block.readHeaded(from, most)
    this.#accepted += accepted
    this.#dropped += dropped
    return { next, heads }
  }

  takeMessages(messages: SyslogMessages, from: number, to: number): number {
    const { next, accepted, dropped } = this.#encoders.block.readMessages(messages, from, to)
    this.#accepted += accepted
    this.#dropped += dropped
    return next
  }

  setDefaultSource(source: string): void {
    this.#encoders.block.setDefaultSource(source)
  }

  set(member: Member, text: string): void {
    this.#encoders.block.protobuf.set(member, text)
  }

  takeRecords(
    form: ProtobufForm,
    from: number,
    to: number,
    most: number,
  ): { readonly next: number; readonly taken: number } {
    const { next, accepted, dropped } = this.#encoders.block.protobuf.read(form, from, to, most)
    this.#accepted += accepted
    this.#dropped += dropped
    return { next, taken: accepted + dropped }
  }

  identify(text: string): boolean {
    const id = onceKey('record', this.#body.keyId, text)
    const isNew = !this.#blockIds.has(id) && !this.#body.repeats.has(id)
    this.#nextId = isNew ? id : null
    if (!isNew) this.#dropped++
    return isNew
  }

  event(line: number, event: CanonicalEvent): void {
    const id = this.#nextId
    this.#nextId = null
    const verdict = this.#verdictOf(event.source)
    if (!this.#mayWrite(event.source)) return
    if (verdict === 'drop' || this.#body.isRepeat) this.#dropped++
    else if (verdict !== 'store') this.reject(line, unstorable(event, verdict))
    else {
      const severity = event.severity ?? this.#encoders.block.levelOf(event.message)
      this.#encoders.block.add(event, severity === null ? INFO : SEVERITIES.indexOf(severity))
      this.#sources.add(event.source)
      this.#keepId(id)
      this.#accepted++
    }
  }

  reject(line: number, found: Rejection): void {
    if (found.source !== '' && !this.#mayWrite(found.source)) return
    // Whatever else is wrong with it, a record of a source outside of the key's is answered like any of that source.
    const rejection = this.#isDenied(found.source) ? { ...found, ...DENIED } : found
    this.#rejected++
    this.#nextId = null
    if (rejection.reason === 'invalid_json') this.#unreadable++
    if (this.#errors.length < REPORTED_ERRORS || isOfProtocol(this.#body.format))
      this.#errors.push({ line, code: rejection.reason, message: rejection.message })
    if (this.#body.isRepeat) return
    const raw = this.#body.keepRaw ? rejection.raw : ''
    // The source of a file's rows is that of the upload.
    const source = rejection.source === '' ? (this.#body.source ?? '') : rejection.source
    const { protocol, keyId } = this.#body
    this.#encoders.dead.add({ protocol, keyId, line }, { ...rejection, source, raw })
  }

  #keepId(id: string | null): void {
    if (id === null) return
    this.#ids.push(id)
    this.#blockIds.add(id)
  }

  /** The counts of the body's messages by outcome. */
  counts() {
    const [accepted, rejected, dropped] = [this.#accepted, this.#rejected, this.#dropped]
    return {
      received: accepted + rejected + dropped,
      accepted,
      rejected,
      dropped,
      errors: this.#errors.toSorted((a, b) => a.line - b.line).slice(0, REPORTED_ERRORS),
      sources: [...this.#sources],
      ids: this.#ids,
      reply: this.replyWriter?.(this.#errors) ?? null,
    }
  }

  /** Called once for each source of the lines that WebAssembly reads. */
  #admit(source: string): Admission {
    const verdict = this.#verdictOf(source)
    if (verdict === 'drop') return 'drop'
    if (verdict !== 'store') return 'parse'
    this.#sources.add(source)
    return 'store'
  }

  #verdictOf(source: string): ReturnType<typeof verdictOf> | 'body_source_limit' {
    if (this.#isDenied(source)) return 'unknown_source'
    const verdict = verdictOf(this.#body.verdicts, source)
    const isBeyond = this.#sources.size >= SOURCES_PER_BODY && !this.#sources.has(source)
    return verdict === 'store' && isBeyond ? 'body_source_limit' : verdict
  }

  #mayWrite(source: string): boolean {
    if (this.#body.deniesRecords) return true
    if (this.#isDenied(source)) this.denied ??= source
    return this.denied === null
  }

  #isDenied(source: string): boolean {
    return source !== '' && this.#body.allowedSources?.includes(source) === false
  }
}

const UNSTORABLE = {
  unknown_source: 'the ingest key may not write to this source, or not register it',
  source_limit: 'no more sources can be registered (MAX_SOURCES)',
  key_source_limit: 'the ingest key can register no more sources (SOURCES_PER_KEY)',
  body_source_limit: `the body names more than ${SOURCES_PER_BODY} sources`,
}

const DENIED = { reason: 'unknown_source', message: UNSTORABLE.unknown_source } as const

function unstorable(event: CanonicalEvent, verdict: keyof typeof UNSTORABLE): Rejection {
  return {
    reason: verdict === 'body_source_limit' ? 'key_source_limit' : verdict,
    message: UNSTORABLE[verdict],
    source: event.source,
    raw: JSON.stringify(toIngestRecord(event)),
  }
}

/** Writes an event as `/ingest` accepts it, for a later replay. */
function toIngestRecord(event: CanonicalEvent): Record<string, unknown> {
  const { timestampMs, traceId, spanId, dedupKey, template, exception: _, ...fields } = event
  const record: Record<string, unknown> = {
    timestamp: new Date(timestampMs).toISOString(),
    ...fields,
    trace_id: traceId,
    span_id: spanId,
    dedup_key: dedupKey,
    'log.record.template': template,
  }
  return Object.fromEntries(
    Object.entries(record).filter(([, value]) => value !== '' && value !== null),
  )
}
