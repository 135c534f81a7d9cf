import { Ajv } from 'ajv'
import type { ErrorObject, ValidateFunction } from 'ajv'
import addFormatsModule from 'ajv-formats'
import type { TObject, TSchema } from '@sinclair/typebox'
import { AppError } from '../model/errors.js'
import { nearestOf } from '../lib/misspelled.js'
import { sizeFaults } from './bounds.js'

/** An invalid field. `path` is dotted, '' for the whole body. It never contains a value of the client. */
export interface FieldError {
  readonly in: 'path' | 'query' | 'body'
  readonly path: string
  readonly message: string
}

/** Compiles each schema on its first use, so that the start does not wait for it. */
export interface Validator {
  /** Coerces texts to the types of the schema and applies defaults; lists may be repeated or joined with commas. */
  texts(place: FieldError['in'], schema: TObject): TextCheck
  /** Neither coerces nor completes the value; unknown fields are errors. */
  json(schema: TSchema): JsonCheck
}

/** Appends faults to `errors`. @returns the typed values */
export type TextCheck = (values: TextSource, errors: FieldError[]) => unknown
/** Appends faults to `errors`. */
type JsonCheck = (value: unknown, errors: FieldError[]) => void

/** A query string, path parameters or form fields. */
interface TextSource {
  getAll(name: string): readonly string[]
  /** The given names, when unknown ones are errors. */
  keys?(): Iterable<string>
}

/** The most errors that are collected; a hostile body can have thousands. */
const MAX_ERRORS = 100

const addFormats = addFormatsModule.default
const NOTHING = Object.freeze({})

export function createValidator(): Validator {
  const options = {
    allErrors: true,
    strict: true,
    strictTypes: false,
    strictRequired: false,
    verbose: true,
  }
  const texts = new Ajv({ ...options, coerceTypes: true, useDefaults: true })
  const bodies = new Ajv(options)
  addFormats(texts)
  addFormats(bodies)
  return {
    texts(place, schema) {
      const names = Object.keys(schema.properties)
      const lists = listNames(schema)
      const isOpen = schema.additionalProperties === true
      let check: ValidateFunction | null = null
      return (values, errors) => {
        if (!isOpen) errors.push(...unknownNames(values, names, place))
        if (names.length === 0) return NOTHING
        check ??= texts.compile(schema)
        const raw = gather(schema, lists, { values, place, errors })
        errors.push(...faultsOf(check, { place, schema, value: raw }))
        for (const [name, value] of Object.entries(raw)) {
          // Ajv would also coerce texts such as `0x10` and `1e309` to numbers.
          const [given] = values.getAll(name)
          if (typeof value !== 'number' || given === undefined || isPlainNumber(given)) continue
          errors.push({ in: place, path: name, message: 'must be a number in decimal digits' })
        }
        return raw
      }
    },
    json(schema) {
      let check: ValidateFunction | null = null
      return (value, errors) => {
        check ??= bodies.compile(closeObjects(schema))
        errors.push(...faultsOf(check, { place: 'body', schema, value }))
      }
    },
  }
}

const unknownNames = (
  values: TextSource,
  names: readonly string[],
  place: FieldError['in'],
): readonly FieldError[] =>
  [...(values.keys?.() ?? [])]
    .filter((name) => name !== '' && !names.includes(name))
    .map((name) => ({ in: place, path: name.slice(0, 128), message: toUnknown(name, names) }))

interface Checked {
  readonly place: FieldError['in']
  readonly schema: TSchema
  readonly value: unknown
}

/** The faults of a value. Ajv checks only the members that are not too large. */
function faultsOf(check: ValidateFunction, { place, schema, value }: Checked): FieldError[] {
  const faults = sizeFaults(schema, value).map((fault) => ({ in: place, ...fault }))
  if (faults.length === 0) return check(value) ? [] : toFieldErrors(check, place)
  const large = new Set(faults.map(({ path }) => memberOf(path)))
  if (large.has('') || typeof value !== 'object' || value === null) return faults
  const others = Object.entries(value).filter(([name]) => !large.has(name))
  if (check(Object.fromEntries(others))) return faults
  return [
    ...faults,
    ...toFieldErrors(check, place).filter(({ path }) => !large.has(memberOf(path))),
  ]
}

/** The top-level member that a path leads into. */
const memberOf = (path: string): string => path.split('.', 1)[0] ?? ''

/** @throws AppError validation_error unless `errors` is empty */
export function throwOnErrors(errors: readonly FieldError[]): void {
  if (errors.length === 0) return
  const all = new Set(errors.map(({ path }) => (path === '' ? 'body' : path)))
  const names = [...all].slice(0, 5)
  const more = all.size > names.length ? ', …' : ''
  const details = { errors: errors.slice(0, MAX_ERRORS) }
  throw new AppError('validation_error', `invalid: ${names.join(', ')}${more}`, { details })
}

function listNames(schema: TObject): ReadonlySet<string> {
  const entries = Object.entries(schema.properties)
  return new Set(entries.filter(([, { type }]) => type === 'array').map(([name]) => name))
}

/** A comma within quotes is part of a name: `"a,b"`. */
const LIST_ITEM = /(?:"[^"]*"|[^,])+/g

interface GatherContext {
  readonly values: TextSource
  readonly place: FieldError['in']
  readonly errors: FieldError[]
}

function gather(
  schema: TObject,
  lists: ReadonlySet<string>,
  { values, place, errors }: GatherContext,
): Record<string, unknown> {
  const raw: Record<string, unknown> = {}
  for (const name of Object.keys(schema.properties)) {
    const given = values.getAll(name)
    if (given.length === 0) continue
    if (lists.has(name)) {
      const items = given.flatMap((text) => text.match(LIST_ITEM) ?? [])
      const words = wordsOf(schema.properties[name]?.['items'])
      if (items.length > 0) raw[name] = items.map((item) => inItsCase(item, words))
      continue
    }
    if (given.length > 1) errors.push({ in: place, path: name, message: 'given more than once' })
    raw[name] = inItsCase(given[0] ?? '', wordsOf(schema.properties[name]))
  }
  return raw
}

/** The words that a schema allows; none when it allows other texts too. */
function wordsOf(schema: TSchema | undefined): readonly string[] {
  const members: readonly TSchema[] = schema?.['anyOf'] ?? []
  const words = members.map((member) => member['const'])
  return words.every((word) => typeof word === 'string') ? words : []
}

/** A text in the spelling of the allowed word that equals it but for case; other texts are unchanged. */
const inItsCase = (text: string, words: readonly string[]): string =>
  words.find((word) => word.toLowerCase() === text.toLowerCase()) ?? text

/** The error suggests known names. Those come from the program, never from the client. */
function toUnknown(name: string, known: readonly string[]): string {
  if (known.length === 0) return 'is no parameter: there are none here'
  const near = nearestOf(name.toLowerCase(), known, Math.ceil(name.length / 2))
  if (near !== undefined) return `is no parameter; did you mean ${near}?`
  const clause = known.includes('q')
    ? ', and q asks for every field of an event: q=trace:4bf92f35'
    : ''
  return `is no parameter; there are ${known.join(', ')}${clause}`
}

/** Decimal digits only, few enough for a finite number. */
const isPlainNumber = (text: string): boolean => /^-?\d{1,300}(\.\d{1,300})?$/.test(text)

/** Sets `additionalProperties: false` on every object that does not set it. */
export function closeObjects<T>(schema: T): T {
  if (Array.isArray(schema)) return schema.map(closeObjects) as T
  if (typeof schema !== 'object' || schema === null) return schema
  const copy: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(schema)) {
    // Each part of an intersection sees the whole object and must allow the fields of the others.
    const isLeft = key === 'allOf' || key === 'const' || key === 'enum' || key === 'default'
    copy[key] = isLeft ? value : closeObjects(value)
  }
  if (copy['type'] === 'object' && 'properties' in copy) copy['additionalProperties'] ??= false
  return copy as T
}

function toFieldErrors(check: ValidateFunction, place: FieldError['in']): FieldError[] {
  const all = check.errors ?? []
  const unions = all.filter(({ keyword }) => keyword === 'anyOf' || keyword === 'oneOf')
  const meant = new Set(unions.flatMap(formOf))
  // The paths in the schema; there are few of them, however many values are wrong.
  const paths = [...new Set(unions.map(({ schemaPath }) => `${schemaPath}/`))]
  /** For a union, reports the errors of the intended form, or else the error of the union. */
  const isMeant = ({ schemaPath, instancePath }: ErrorObject): boolean =>
    paths.every((path) => {
      if (!schemaPath.startsWith(path)) return true
      const form = path + schemaPath.slice(path.length).split('/', 1)[0]
      return placesAround(instancePath).some((around) => meant.has(`${form} ${around}`))
    })
  return all
    .filter((error) => formOf(error).length === 0 && isMeant(error))
    .map((error) => ({ in: place, path: toPath(error), message: toMessage(error) }))
}

/** Returns the form of the union that the value selects by its `type`, and the path of the value. */
function formOf({ schema, schemaPath, instancePath, data }: ErrorObject): readonly string[] {
  const index = typesOf(schema).indexOf(Object(data).type)
  return index < 0 ? [] : [`${schemaPath}/${index} ${instancePath}`]
}

/** `/a/b` → `/a/b`, `/a` and the whole. */
const placesAround = (path: string): readonly string[] =>
  path.split('/').map((_, i, steps) => steps.slice(0, steps.length - i).join('/'))

/** The values of `type` that distinguish the forms of a union; none when they have no such field. */
function typesOf(schema: unknown): readonly unknown[] {
  if (!Array.isArray(schema)) return []
  const types: readonly unknown[] = schema.map((one) => Object(one).properties?.type?.const)
  return types.includes(undefined) ? [] : types
}

/** `/event_ids/3` → `event_ids.3`; a missing or unknown field is appended. */
function toPath({ instancePath, params }: ErrorObject): string {
  const steps = instancePath.split('/').slice(1)
  const named: unknown = params['missingProperty'] ?? params['additionalProperty']
  if (typeof named === 'string') steps.push(named.slice(0, 128))
  return steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~')).join('.')
}

function toMessage({ keyword, params, message, schema, parentSchema }: ErrorObject): string {
  switch (keyword) {
    case 'pattern':
      return `must be ${String(parentSchema?.['description'])}`
    case 'format':
      return schema === 'uuid' ? 'must be a UUID' : `must be a ${String(schema)}`
    case 'required':
      return 'is required'
    case 'additionalProperties':
      return 'is not a known field'
    case 'enum':
      return `must be one of ${[params['allowedValues']].flat().map(String).join(', ')}`
    case 'anyOf':
    case 'oneOf':
      return describeUnion(schema)
    default:
      return message ?? 'is invalid'
  }
}

function describeUnion(schema: unknown): string {
  const types = typesOf(schema)
  if (types.length > 0) return `its type must be one of ${types.join(', ')}`
  const constants: readonly unknown[] = Array.isArray(schema)
    ? schema.map((one) => (Object(one).type === 'null' ? null : Object(one).const))
    : []
  if (constants.length === 0 || constants.includes(undefined)) return 'has none of the known forms'
  return `must be one of ${constants.map(String).join(', ')}`
}
