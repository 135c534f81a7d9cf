import { VALUE } from './template-text.js'

/*
 * A slot is a part of a message whose content may vary as a whole: text in quotes, text in brackets
 * that are not attached to a word, text after `key=`, and JSON values. The rest is the frame, which
 * distinguishes log statements. The text after `: ` following a sentence is its tail.
 */

/** Offsets of a content in a text. */
export interface Slot {
  readonly from: number
  readonly to: number
}

/** The most slots; further ones belong to the frame. */
const MAX_SLOTS = 16
/** The longest content; a longer one belongs to the frame. */
const MAX_CONTENT = 2048
const MAX_DEPTH = 16
/** The longest sentence with a tail. */
const MAX_HEAD = 400
/** A list of names and values, such as `client: 10.0.0.1, server: main`, which is no tail. */
const NAMED_VALUES = /^[^:]*, \w+: /
const ERROR =
  /\b(?:fail|failed|failure|unable|could not|couldn't|cannot|can't|error|exception|raised|reason|cause)\b/i

/** Stands for the content of a slot in a frame. */
const CONTENT = '\u0002'
const CLOSING: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' }
const QUOTES = new Set('"\'`')
const BEFORE = new Set(' ([{=:,<|;')
const BEHIND = new Set(' )]}=:,>.;!?|')
/** Keys whose value is the message's own sentence. */
const SENTENCE_KEYS = new Set(['msg', 'message'])
const KEY_AT_END = /(?:^|[\s,([{])([A-Za-z_][\w.-]*)=$/
const NEXT_KEY = /[\s,(][A-Za-z_][\w.-]*=/
const OPENS_JSON = /^(?:\{\s*"[^"]*"\s*:|\[\s*[{[])/
const LIST = /^\[(?:\s*"(?:[^"\\]|\\.)*"|[^"{}[\],]+)(?:,(?:\s*"(?:[^"\\]|\\.)*"|[^"{}[\],]+))*\]/
const LABEL = /^(?:<\*>|\w+): /
const SENTENCE_MEMBER = /[{,]\s*"(?:msg|message)"\s*:\s*$/
const MEMBER_AT_END = /[{,]\s*"[^"]{0,80}"$/
const LOGFMT_SENTENCE = /(?:^|[\s,([{])(?:msg|message)="/
const JSON_SENTENCE = /[{,]\s*"(?:msg|message)"\s*:\s*"/
const SIGN = /[\w"]=/
const NAME = /\w: /
/**
 * The method of a request says what is requested, so it is part of the frame when no name precedes
 * it: `"GET <*>"`.
 */
const METHOD = /^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|CONNECT) /

/** The slots outside of a tail, and the tail. */
export function slotsAround(text: string, tail: Slot): readonly Slot[] {
  // The text after a sentence begins with the closing quote of the sentence.
  const at = Math.min(tail.to + 1, text.length)
  const behind = findSlots(text.slice(at)).map(({ from, to }) => ({ from: at + from, to: at + to }))
  return [...findSlots(text.slice(0, tail.from)), tail, ...behind]
}

export function findSlots(text: string): readonly Slot[] {
  const slots: Slot[] = []
  let i = 0
  while (i < text.length && slots.length < MAX_SLOTS) {
    const c = text[i] ?? ''
    const opens = i === 0 || BEFORE.has(text[i - 1] ?? '')
    if (c === '=') i = readAssigned(text, i + 1, slots)
    else if (opens && QUOTES.has(c)) i = readQuoted(text, i, slots)
    else if (opens && CLOSING[c] !== undefined) i = readBracket(text, i, slots)
    else i++
  }
  return slots
}

/** The text without the contents of its slots. */
export function frameOf(text: string, slots: readonly Slot[]): string {
  let frame = ''
  let at = 0
  for (const { from, to } of slots) {
    frame += text.slice(at, from) + CONTENT
    at = to
  }
  return frame + text.slice(at)
}

/**
 * Finds the quoted text after `msg=` or `message=` in logfmt, or after `"msg":` or `"message":` in
 * JSON.
 *
 * @returns null without one
 */
export function findSentence(text: string): Slot | null {
  const name = (text.startsWith('{') ? JSON_SENTENCE : LOGFMT_SENTENCE).exec(text)
  if (name === null) return null
  const from = name.index + name[0].length
  const to = quoteEnd(text, from - 1)
  return to < 0 ? null : { from, to }
}

/**
 * Finds the text after `: ` following a suitable head, outside of slots; null without one. In
 * logfmt and JSON it is searched in the sentence.
 */
export function findTail(text: string, isHead: (head: string) => boolean): Slot | null {
  const sentence = text.includes(': ') ? findSentence(text) : null
  if (sentence === null) return tailOf(text, isHead)
  const { from, to } = sentence
  const tail = tailOf(text.slice(from, to), isHead)
  return tail === null ? null : { from: from + tail.from, to }
}

function tailOf(text: string, isHead: (head: string) => boolean): Slot | null {
  const slots = text.includes(': ') ? findSlots(text) : []
  for (let at = text.indexOf(': '); at >= 0 && at < MAX_HEAD; at = text.indexOf(': ', at + 1)) {
    const head = text.slice(0, at)
    const isInside = slots.some(({ from, to }) => from <= at && at < to) || isUnclosed(head)
    if (MEMBER_AT_END.test(head) || isInside) continue
    if (isHead(head) && at + 2 < text.length) {
      return NAMED_VALUES.test(text.slice(at + 2, at + MAX_HEAD))
        ? null
        : { from: at + 2, to: text.length }
    }
  }
  return null
}

const isUnclosed = (text: string): boolean =>
  text.split('(').length > text.split(')').length || text.split('[').length > text.split(']').length

/** Whether a text is a sentence, or a shorter text about an error. */
export function isSentence(text: string): boolean {
  const words = countSentence(text)
  return words >= 4 || (words >= 2 && ERROR.test(text))
}

/** Whether a text has `name=value`, or `name: value` twice with a comma or semicolon between. */
function hasNames(text: string): boolean {
  if (SIGN.test(text)) return true
  const [first, ...others] = text.split(/[,;] /)
  let isNamed = first !== undefined && NAME.test(first)
  for (const part of others) {
    const isName = NAME.test(part)
    if (isNamed && isName) return true
    isNamed ||= isName
  }
  return false
}

/** Whether a text has more than one word. */
export const isPhrase = (text: string): boolean => countSentence(text) >= 2

/** Counts words outside of brackets that are no names of values. */
export const countSentence = (text: string): number =>
  countWords(text.replaceAll(/\([^()]*\)|\[[^[\]]*\]|(?<![\w.-])[\w.-]+=\S*/g, ' '))

export const countWords = (text: string): number =>
  text.replaceAll(VALUE, ' ').match(/[A-Za-z\u0080-\uffff]{2,}/g)?.length ?? 0

const PAIRS = ['""', "''", '``', '()', '[]', '{}']

/** The content of an open slot: a value, in the quotes and brackets that all contents have. */
export function openContent(contents: readonly string[]): string {
  for (const [open = '', close = ''] of PAIRS) {
    if (contents.every((c) => c.length >= 2 && c.startsWith(open) && c.endsWith(close)))
      return open + openContent(contents.map((c) => c.slice(1, -1))) + close
  }
  // A label that all contents begin with, such as that of an error number.
  const label = LABEL.exec(contents[0] ?? '')?.[0]
  if (label !== undefined && contents.every((c) => c.startsWith(label)))
    return label + openContent(contents.map((c) => c.slice(label.length)))
  return contents.every((c) => c.length > 1 && c.endsWith('.')) ? `${VALUE}.` : VALUE
}

// Each reader returns the offset after what it read.

function readQuoted(text: string, at: number, slots: Slot[]): number {
  const close = quoteEnd(text, at)
  if (close < 0) return at + 1
  const isNamed = text[at - 2] === ':' || text[at - 1] === '='
  const method = isNamed ? null : METHOD.exec(text.slice(at + 1, at + 9))
  const from = at + 1 + (method?.[0].length ?? 0)
  // A message that begins with a quoted text is about that text, so it is no slot.
  if (at > 0 && !isName(text, at, close)) slots.push({ from, to: close })
  return close + 1
}

/** Whether a quoted text is the name of a member of an object. */
const isName = (text: string, at: number, close: number): boolean =>
  /^\s*:/.test(text.slice(close + 1, close + 4)) &&
  /[{,]\s*$/.test(text.slice(Math.max(0, at - 4), at))

function quoteEnd(text: string, at: number): number {
  const quote = text[at]
  const most = Math.min(text.length, at + MAX_CONTENT)
  for (let i = at + 1; i < most; i++) {
    if (text[i] === '\\') i++
    else if (text[i] === quote && (i + 1 === text.length || BEHIND.has(text[i + 1] ?? ''))) return i
  }
  return -1
}

function readBracket(text: string, at: number, slots: Slot[]): number {
  const part = text.slice(at, at + MAX_CONTENT)
  // A list is one slot, because lists have different lengths.
  const list = LIST.exec(part)
  if (list !== null) {
    slots.push({ from: at + 1, to: at + list[0].length - 1 })
    return at + list[0].length
  }
  if (OPENS_JSON.test(part)) return readJson(text, at, slots)
  const close = bracketEnd(part)
  if (close < 0 || hasNames(part.slice(1, close))) return at + 1
  slots.push({ from: at + 1, to: at + close })
  return at + close + 1
}

function bracketEnd(text: string): number {
  const open: string[] = []
  for (let i = 0; i < text.length && open.length < MAX_DEPTH; i++) {
    const c = text[i] ?? ''
    const closing = CLOSING[c]
    if (closing !== undefined) open.push(closing)
    else if (c === open.at(-1)) {
      open.pop()
      if (open.length === 0) return i
    }
  }
  return -1
}

/** Reads one object or array. */
function readJson(text: string, at: number, slots: Slot[]): number {
  let i = at + 1
  while (i < text.length && slots.length < MAX_SLOTS) {
    const c = text[i] ?? ''
    if (c === '}' || c === ']') return i + 1
    if (c === '"') {
      // If the object is the whole message, this member is its sentence.
      const isMain = at === 0 && SENTENCE_MEMBER.test(text.slice(Math.max(0, i - 20), i))
      i = readJsonText(text, i, isMain ? [] : slots)
    } else if (c === '{' || c === '[') i = readBracket(text, i, slots)
    else if (/[\s,:]/.test(c)) i++
    else i = readJsonWord(text, i, slots)
  }
  return i
}

function readJsonText(text: string, at: number, slots: Slot[]): number {
  const close = quoteEnd(text, at)
  if (close < 0) return at + 1
  if (!/^\s*:/.test(text.slice(close + 1, close + 4))) slots.push({ from: at + 1, to: close })
  return close + 1
}

function readJsonWord(text: string, at: number, slots: Slot[]): number {
  const length = /^[^,}\]]*/.exec(text.slice(at, at + MAX_CONTENT))?.[0].length ?? 0
  slots.push({ from: at, to: at + length })
  return at + length
}

function readAssigned(text: string, at: number, slots: Slot[]): number {
  const key = KEY_AT_END.exec(text.slice(Math.max(0, at - 80), at))?.[1]
  const c = text[at]
  if (key === undefined || c === undefined || c === '=') return at
  if (QUOTES.has(c)) {
    const close = quoteEnd(text, at)
    if (close < 0) return at + 1
    if (!SENTENCE_KEYS.has(key)) slots.push({ from: at + 1, to: close })
    return close + 1
  }
  if (SENTENCE_KEYS.has(key)) return at
  const part = text.slice(at, at + MAX_CONTENT)
  if (LIST.test(part) || OPENS_JSON.test(part)) return readBracket(text, at, slots)
  const length = assignedLength(part)
  if (length > 0) slots.push({ from: at, to: at + length })
  return at + length
}

/** The length of a value without quotes. It ends at the next key, a comma, or a bracket that was open before it. */
function assignedLength(text: string): number {
  const most = NEXT_KEY.exec(text)?.index ?? text.length
  let depth = 0
  for (let i = 0; i < most; i++) {
    const c = text[i] ?? ''
    if (CLOSING[c] !== undefined) depth++
    else if (')]}'.includes(c) && depth-- === 0) return i
    else if (depth === 0 && (c === ',' || c === ';')) return i
  }
  return most
}
