import { emptyRecord, type JsonRecord } from './json-value.js'

/** The members of Serilog's compact format that begin with `@`, whose names without it mean something else elsewhere. */
const NAMES: Readonly<Partial<Record<string, string>>> = {
  '@t': 'timestamp',
  '@m': 'message',
  '@mt': 'log.record.template',
  '@l': 'level',
  '@x': 'exception',
  '@i': 'event_type',
  '@tr': 'trace_id',
  '@sp': 'span_id',
}

/** Recognises a record of Serilog's compact format (CLEF), which Seq and other .NET tools write. */
export const isCompact = (record: JsonRecord): boolean =>
  record['@t'] !== undefined && ('@m' in record || '@mt' in record || '@x' in record)

/**
 * Gives the members of a compact record their usual names. Without a level it is an information, without a message the
 * template is rendered. A name of the program that begins with `@` is written with a second one.
 */
export function expandCompact(record: JsonRecord): JsonRecord {
  const expanded = emptyRecord()
  for (const name of Object.keys(record)) {
    const usual = Object.hasOwn(NAMES, name) ? NAMES[name] : undefined
    if (usual !== undefined) expanded[usual] = record[name]
    else if (name !== '@r') expanded[name.replace(/^@@/, '@')] = record[name]
  }
  const template = record['@mt']
  if (typeof template === 'string') expanded['message'] ??= render(template, record)
  expanded['level'] ??= 'Information'
  return expanded
}

/** `{OrderId}`, `{@User}`, `{Elapsed,8:0.000}`; `{{` and `}}` are braces. */
const HOLE = /\{\{|\}\}|\{[@$]?(\w{1,128})(?:,-?\d{1,9})?(?::[^{}]{0,128})?\}/g

const render = (template: string, record: JsonRecord): string =>
  template.replace(HOLE, (hole, name: string | undefined) => {
    if (name === undefined) return hole.charAt(0)
    const value = Object.hasOwn(record, name) ? record[name] : undefined
    if (value === undefined) return hole
    return typeof value === 'string' ? value : JSON.stringify(value)
  })
