import { EXCEPTION_NAMES } from '../../model/exceptions.js'
import { comparedName } from './aliases.js'
import type { FieldCandidates } from './field-candidates.js'
import { isRecord, type JsonRecord } from './json-value.js'

/** The characters of an exception that a search covers; the whole stays a tag. */
const MAX_CHARS = 32_768
const MAX_DEPTH = 6
/** Frames of a stack that is a list, and members of an exception that is an object. */
const MAX_ITEMS = 256

export interface FoundException {
  /** All texts of the exception, one below the other. */
  readonly text: string
  /** The error without the stack; '' when no text has it. */
  readonly headline: string
}

/** Finds the exception that a structured logger keeps beside its message. */
export function findException(candidates: FieldCandidates): FoundException | null {
  const texts: string[] = []
  let headline = ''
  for (const { value } of candidates.of('exception')) {
    if (headline === '') headline = headlineOf(value)
    collect(value, texts, 0)
  }
  return texts.length === 0 ? null : { text: joined(texts), headline }
}

/** The names of tags of a canonical record that hold an exception: `hasException` of `src/wasm/assembly/line.ts` knows how they begin. */
const EXCEPTIONS: ReadonlySet<string> = new Set(
  EXCEPTION_NAMES.filter((name) => /^(?:err|exc|stac)/.test(name)),
)

/** Finds the exception among the tags of a canonical record. */
export function exceptionInTags(tags: JsonRecord): string {
  const texts: string[] = []
  for (const name of Object.keys(tags)) {
    const value = tags[name]
    const isException = typeof value === 'string' || isRecord(value)
    if (isException && EXCEPTIONS.has(comparedName(name))) collect(value, texts, 0)
  }
  return joined(texts)
}

/** A text that is part of another one is left out. */
function joined(texts: readonly string[]): string {
  let all = ''
  for (const text of texts) {
    if (all.length >= MAX_CHARS) break
    if (!all.includes(text)) all += (all === '' ? '' : '\n') + text.slice(0, MAX_CHARS - all.length)
  }
  return all
}

function collect(value: unknown, texts: string[], depth: number): void {
  if (typeof value === 'string') {
    const text = value.trim()
    if (text !== '') texts.push(text)
  } else if (typeof value === 'object' && value !== null && depth < MAX_DEPTH) {
    for (const item of Object.values(value).slice(0, MAX_ITEMS)) {
      if (texts.length < MAX_ITEMS) collect(item, texts, depth + 1)
    }
  }
}

/** @returns '' for a value that does not describe an error */
function headlineOf(value: unknown): string {
  if (typeof value === 'string') return firstLine(value)
  if (!isRecord(value)) return ''
  const text = (names: readonly string[]): string => {
    const found = names.map((name) => value[name]).find((item) => typeof item === 'string')
    return typeof found === 'string' ? found : ''
  }
  const stack = text(['stack', 'stack_trace', 'stackTrace', 'stacktrace'])
  if (stack.trim() !== '') return firstLine(stack)
  const parts = [text(['type', 'name', 'class', 'kind']), text(['message', 'msg', 'reason'])]
  return firstLine(parts.filter((part) => part !== '').join(': '))
}

/** Python writes the error below the stack. */
function firstLine(text: string): string {
  const lines = text.trim().split(/\r?\n/)
  const isPython = lines[0]?.startsWith('Traceback (') === true
  return ((isPython ? lines.at(-1) : lines[0]) ?? '').trim()
}
