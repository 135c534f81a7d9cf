import { EVENT_TYPES, PRIORITIES, SEVERITIES } from '../model/event.js'
import { parseSeverity } from '../model/severity.js'
import { BUILTIN_FIELDS, type BuiltinField, type Field } from './ast.js'
import { nearest } from './fault.js'

/** The kind of a field's values. */
export type FieldKind =
  | 'severities'
  /** A closed set of names. */
  | 'names'
  | 'texts'
  | 'texts without regex'
  /** Words, prefixes, phrases and regular expressions. */
  | 'words'
  | 'integers'
  | 'template ids'
  | 'durations'
  | 'fields'
  /** Texts and numbers. */
  | 'attributes'

interface FieldType {
  readonly kind: FieldKind
  /** All values of a field with few values. */
  readonly names: readonly string[]
}

/** The severities in ascending order. */
export const SEVERITY_NAMES: readonly string[] = SEVERITIES.map((name) => name.toLowerCase())

const of = (kind: FieldKind, names: readonly string[] = []): FieldType => ({ kind, names })

const TYPES: Readonly<Record<BuiltinField, FieldType>> = {
  severity: of('severities', SEVERITY_NAMES),
  priority: of('names', PRIORITIES),
  type: of('names', EVENT_TYPES),
  source: of('texts'),
  application: of('texts without regex'),
  environment: of('texts'),
  host: of('texts'),
  message: of('words'),
  template: of('template ids'),
  trace: of('texts'),
  span: of('texts'),
  id: of('integers'),
  count: of('integers'),
  new: of('durations'),
  has: of('fields', BUILTIN_FIELDS),
}

const ATTRIBUTE = of('attributes')

export const typeOf = (field: Field): FieldType =>
  field.kind === 'builtin' ? TYPES[field.name] : ATTRIBUTE

/** Marks an attribute whose name is also that of a built-in field. */
export const TAG = 'tag.'
export const MAX_NAME = 128

export const isBuiltinName = (name: string): name is BuiltinField =>
  BUILTIN_FIELDS.some((builtin) => builtin === name)

/** @param name a name as it stands in a line, without quotes */
export function toField(name: string): Field {
  if (isBuiltinName(name)) return { kind: 'builtin', name }
  const isMarked = name.startsWith(TAG) && name.length > TAG.length
  return { kind: 'attribute', name: isMarked ? name.slice(TAG.length) : name }
}

/**
 * Reads the name of one field outside of a line, with or without quotes: `user name`, `"user name"`.
 *
 * @returns null for `a,b`, which is several unless it has quotes
 */
export function readName(text: string): Field | null {
  const [, quoted] = /^"((?:[^"\\]|\\[^])*)"$/.exec(text) ?? []
  if (quoted !== undefined) return toField(quoted.replaceAll(/\\(["\\])/g, '$1'))
  return /^"|,/.test(text) ? null : toField(text)
}

/** The name from which `toField` makes the same field. */
export function nameOf({ kind, name }: Field): string {
  const isAmbiguous = kind === 'attribute' && (isBuiltinName(name) || name.startsWith(TAG))
  return isAmbiguous ? TAG + name : name
}

/** Other names of built-in fields: in the parameters of the API, and in other log systems. */
const SYNONYMS: Readonly<Record<string, BuiltinField>> = {
  level: 'severity',
  service: 'source',
  app: 'application',
  env: 'environment',
  hostname: 'host',
  msg: 'message',
  template_id: 'template',
  trace_id: 'trace',
  span_id: 'span',
  occurrence_count: 'count',
}

/** Shorter names are not corrected, because they are one edit away from many words. */
const MIN_LIKE = 4

/** The built-in field that an attribute's name may have been meant for. */
export function builtinLike(name: string): string | null {
  if (Object.hasOwn(SYNONYMS, name)) return SYNONYMS[name] ?? null
  const first = name.charAt(0).toLowerCase()
  if (name.length < MIN_LIKE) return null
  const names = BUILTIN_FIELDS.filter((one) => one.length >= MIN_LIKE && one.startsWith(first))
  return nearest(name, names)
}

/** @returns the severity in lower case, null for none */
export const toSeverity = (text: string): string | null =>
  parseSeverity(text)?.toLowerCase() ?? null

const NUMBER = /^-?(?:0|[1-9]\d{0,30})(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?$/

/** A finite number as JSON writes it, so that `007` is a text. */
export const isNumber = (text: string): boolean =>
  NUMBER.test(text) && Number.isFinite(Number(text))

export const isInteger = (text: string): boolean =>
  /^(?:0|[1-9]\d{0,15})$/.test(text) && Number.isSafeInteger(Number(text))

export const isDuration = (text: string): boolean => /^[1-9]\d{0,4}[smhdw]$/.test(text)

export const isTemplateId = (text: string): boolean => /^[0-9a-f]{16}$/i.test(text)
