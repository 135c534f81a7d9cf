import type { Severity } from '../../model/event.js'
import { FieldCandidates, NamePlace } from './field-candidates.js'
import { findLevel } from './record-fields.js'
import { parseWrapped } from './record.js'

/** Finds the level of a log line in JSON that is the message of a record without one. @returns null for any other text */
export function levelInJson(message: string): Severity | null {
  const record = parseWrapped(message)
  return record === null ? null : findLevel(new FieldCandidates(record, new NamePlace())).severity
}
