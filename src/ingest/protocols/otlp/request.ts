import { AppError } from '../../../model/errors.js'
import { checkRequest } from '../../formats/json-size.js'
import { parseJson } from '../../formats/json-text.js'
import { isRecord, type JsonRecord, toWellFormed } from '../../formats/json-value.js'
import { fromJson, type MessageForm, MessageReader } from '../message-form.js'
import { RESOURCE, SCOPE } from './forms.js'

/** What the items of one scope have in common. */
export interface Origin {
  readonly resource: JsonRecord
  /** '' for none. */
  readonly scope: string
}

interface Signal {
  /** The form of an item: a log record, a span, a metric. */
  readonly item: MessageForm
  /** The names of the lists in JSON. */
  readonly resources: string
  readonly scopes: string
  readonly items: string
}

export interface Visitor {
  /** Takes an item. */
  readonly visit: (item: JsonRecord, origin: Origin) => void
  /**
   * Takes items in protobuf that need no objects: fields of the scope between two offsets.
   *
   * @returns the offset of the first field that `visit` may have to take
   */
  readonly take: (from: number, to: number, origin: Origin) => number
}

/**
 * Reads a request of one signal in protobuf or JSON, whichever it is, and hands over one item after another.
 *
 * @throws AppError `bad_request` when it is neither
 */
export function readRequest(bytes: Buffer, signal: Signal, visitor: Visitor): void {
  const isJson = mayBeJson(bytes)
  const json = isJson ? parse(bytes) : undefined
  if (isJson && (json !== undefined || bytes[0] !== LINE_END)) readJson(json, signal, visitor)
  else readProtobuf(bytes, signal, visitor)
}

/** The first byte of a request in protobuf, that of its only field. */
const LINE_END = 0x0a

/** Whether the body has the braces of an object. One in protobuf may have them, too. */
function mayBeJson(bytes: Buffer): boolean {
  const start = bytes.findIndex((byte) => byte > 0x20)
  const isObject = bytes[start] === 0x7b
  if (!isObject || bytes[0] !== LINE_END) return isObject
  return bytes[bytes.findLastIndex((byte) => byte > 0x20)] === 0x7d
}

function readProtobuf(bytes: Buffer, { item }: Signal, visitor: Visitor): void {
  const reader = new MessageReader(bytes)
  try {
    reader.each(bytes.length, (no) => {
      if (no === 1) readResource(reader, item, visitor)
    })
  } catch (cause) {
    if (cause instanceof AppError) throw cause
    throw new AppError('bad_request', 'the body is neither protobuf nor JSON of OTLP', { cause })
  }
}

function readResource(reader: MessageReader, item: MessageForm, { visit, take }: Visitor): void {
  const described = describe(reader, RESOURCE)
  const resource = attributesOf(described)
  reader.each(reader.fieldEnd(), (no) => {
    if (no !== 2) return
    const { name } = describe(reader, SCOPE)
    const origin = { resource, scope: typeof name === 'string' ? name : '' }
    const end = reader.fieldEnd()
    const takeNext = (from: number): number => take(from, end, origin)
    reader.skipTo(takeNext)
    reader.each(end, (field) => {
      if (field !== 2) return
      visit(reader.message(item), origin)
      reader.skipTo(takeNext)
    })
  })
}

/** Reads field 1 of the message at the reader, which describes the others, and returns to the message. */
function describe(reader: MessageReader, form: MessageForm): JsonRecord {
  const { pos, type } = reader
  let found: JsonRecord = {}
  const end = reader.fieldEnd()
  for (let no = reader.nextField(end); no !== 0; no = reader.nextField(end)) {
    if (no !== 1) continue
    found = reader.message(form)
    // Every writer has the description first.
    break
  }
  reader.pos = pos
  reader.type = type
  return found
}

/** @returns undefined when it is not JSON */
function parse(bytes: Buffer): unknown {
  checkRequest(bytes)
  return parseJson(bytes.toString('utf8'))
}

function readJson(json: unknown, { item, ...names }: Signal, { visit }: Visitor): void {
  const request = toWellFormed(json)
  if (!isRecord(request)) throw new AppError('bad_request', 'the body is not JSON of OTLP')
  for (const described of records(request[names.resources])) {
    const resource = attributesOf(fromJson(RESOURCE, described['resource']))
    for (const scoped of records(described[names.scopes])) {
      const { name } = fromJson(SCOPE, scoped['scope'])
      const origin = { resource, scope: typeof name === 'string' ? name : '' }
      for (const each of records(scoped[names.items])) visit(fromJson(item, each), origin)
    }
  }
}

const records = (value: unknown): readonly JsonRecord[] =>
  Array.isArray(value) ? value.filter(isRecord) : []

export const attributesOf = ({ attributes }: JsonRecord): JsonRecord =>
  isRecord(attributes) ? attributes : {}
