import type { Severity } from '../model/event.js'
import { levelAtHead } from '../templates/head-level.js'
import { FieldCandidates, NamePlace } from './formats/field-candidates.js'
import { findLevel } from './formats/record-fields.js'
import { parseWrapped } from './formats/record.js'

const BRACE = 0x7b

/** @param message bytes are ASCII; @returns null when it states no level */
type LevelOfMessage = (message: string | Uint8Array) => Severity | null

/**
 * Finds the levels of records that name none: for a log line in JSON a level anywhere in it, for
 * other messages one at the head. The names in JSON lines are cached.
 */
export function createLevelOfMessage(): LevelOfMessage {
  const names = new NamePlace()
  const inJson: LevelOfMessage = (message) => {
    if (typeof message !== 'string' && message[0] !== BRACE) return null
    const record = parseWrapped(typeof message === 'string' ? message : asText(message))
    return record === null ? null : findLevel(new FieldCandidates(record, names)).severity
  }
  return (message) => inJson(message) ?? levelAtHead(message)
}

const asText = ({ buffer, byteOffset, length }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, length).toString('latin1')
