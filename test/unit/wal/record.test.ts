import {
  array,
  assert,
  boolean,
  constant,
  constantFrom,
  integer,
  maxSafeNat,
  nat,
  option,
  oneof,
  property,
  record,
  string,
  uint8Array,
} from 'fast-check'
import { test } from 'tap'
import { decodeRecord, encodeRecord, type LogRecord } from '../../../src/wal/record.js'

const name = string({ unit: 'grapheme', maxLength: 20 })
const hex = string({
  unit: constantFrom(...Array.from({ length: 16 }, (_, n) => n.toString(16))),
  minLength: 16,
  maxLength: 16,
})
const command = oneof(
  record({ kind: constant('delete-sources' as const), sources: array(name) }),
  record({ kind: constant('clear-all' as const) }),
  record({
    kind: constant('correct-event' as const),
    correction: record({
      id: maxSafeNat(),
      tsMs: integer(),
      priority: constantFrom('P1' as const, 'P2' as const, 'P3' as const, 'P4' as const),
      reason: name,
    }),
  }),
  record({ kind: constant('delete-dead-letters' as const), ids: array(maxSafeNat()) }),
)
const bytes = option(uint8Array({ minLength: 1, maxLength: 400 }))
const entry = record({
  landing: bytes,
  landingRows: nat(),
  dead: bytes,
  templates: array(
    record({
      source: name,
      id: hex,
      born: maxSafeNat(),
      redirectId: oneof(hex, constant('')),
      text: name,
    }),
    { maxLength: 4 },
  ),
  registrations: array(
    record({
      name,
      type: constantFrom('push' as const, 'file' as const, 'webhook' as const),
      connector: name,
      applicationId: option(name),
      keyId: name,
    }),
    { maxLength: 4 },
  ),
  command: option(command),
})

const plain = (parts: LogRecord): unknown => ({
  ...parts,
  landing: parts.landing === null ? null : Buffer.from(parts.landing).toString('hex'),
  dead: parts.dead === null ? null : Buffer.from(parts.dead).toString('hex'),
})

void test('a record is decoded as it was encoded, from memory and from disk', async () => {
  assert(
    property(entry, boolean(), (parts, fromDisk) => {
      const written = encodeRecord(parts)
      const read = decodeRecord(fromDisk ? [Buffer.concat(written)] : written)
      return JSON.stringify(plain(read)) === JSON.stringify(plain(parts))
    }),
  )
})
