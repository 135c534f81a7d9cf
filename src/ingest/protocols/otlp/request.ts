import { AppError } from '../../../model/errors.js'
import { isRecord, type JsonRecord } from '../../formats/json-value.js'
import {
  fromJson,
  memberOf,
  type MessageForm,
  MessageReader,
  readJsonForm,
} from '../message-form.js'
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
  /** Receives an item. */
  readonly visit: (item: JsonRecord, origin: Origin) => void
  /**
   * Takes protobuf items that need no objects: fields of the scope between two offsets.
   *
   * @returns the offset of the first field that it did not take, or `to`
   */
  readonly take: (from: number, to: number, origin: Origin) => number
}

/**
 * Reads a request of one signal in protobuf or JSON, and passes on one item after another.
 *
 * @throws AppError `bad_request` when it is neither
 */
export function readRequest(bytes: Buffer, signal: Signal, visitor: Visitor): void {
  const json = readJsonForm(bytes)
  if (json === null) readProtobuf(bytes, signal, visitor)
  else readJson(json, signal, visitor)
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

/** Reads field 1 of the message at the reader, the description, and returns to the start of the message. */
function describe(reader: MessageReader, form: MessageForm): JsonRecord {
  const { pos, type } = reader
  let found: JsonRecord = {}
  const end = reader.fieldEnd()
  for (let no = reader.nextField(end); no !== 0; no = reader.nextField(end)) {
    if (no !== 1) continue
    found = reader.message(form)
    // Every writer puts the description first, so no field after it is looked at.
    break
  }
  reader.pos = pos
  reader.type = type
  return found
}

function readJson(request: JsonRecord, { item, ...names }: Signal, { visit }: Visitor): void {
  for (const described of records(request, names.resources)) {
    const resource = attributesOf(fromJson(RESOURCE, described['resource']))
    for (const scoped of records(described, names.scopes)) {
      const { name } = fromJson(SCOPE, scoped['scope'])
      const origin = { resource, scope: typeof name === 'string' ? name : '' }
      for (const each of records(scoped, names.items)) visit(fromJson(item, each), origin)
    }
  }
}

function records(message: JsonRecord, name: string): readonly JsonRecord[] {
  const list = memberOf(message, name)
  return Array.isArray(list) ? list.filter(isRecord) : []
}

export const attributesOf = ({ attributes }: JsonRecord): JsonRecord =>
  isRecord(attributes) ? attributes : {}
