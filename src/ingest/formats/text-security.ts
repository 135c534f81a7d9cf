import type { Severity } from '../../model/event.js'
import type { Draft } from './draft.js'
import type { TagCollector } from './tags.js'
import { parseTimestamp } from './timestamp.js'
import type { Clock } from './zone.js'

const HEADER = ['vendor', 'product', 'product_version', 'event_id', 'name'] as const
const MAX_FIELDS = 128

/**
 * Reads an event of a security product: `CEF:0|vendor|product|version|id|name|severity|key=value …` or
 * `LEEF:2.0|vendor|product|version|id|^|key=value^…`. All of it stays in the message, so that it can be searched.
 */
export function refineSecurity(draft: Draft, tags: TagCollector, clock: Clock): void {
  const { header, fields, level } = readEvent(draft.message)
  HEADER.forEach((name, i) => tags.add(name, header[i]))
  for (const [name, value] of fields) tags.add(name, value)
  const of = (...names: readonly string[]): string =>
    fields.find(([key, value]) => names.includes(key) && value !== '')?.[1] ?? ''
  draft.severity = severityOf(level ?? of('sev'))
  draft.host = of('dvchost', 'shost').slice(0, 255)
  const time = of('rt', 'devTime', 'end', 'start')
  draft.timestampMs = time === '' ? null : parseTimestamp(time, clock)
}

interface SecurityEvent {
  /** The values of HEADER. */
  readonly header: readonly string[]
  readonly fields: Fields
  /** The level of the header; null for LEEF, which has it among the fields. */
  readonly level: string | null
}

function readEvent(text: string): SecurityEvent {
  if (text.startsWith('CEF:')) {
    const { parts, rest } = splitHeader(text, 7)
    return { header: parts.slice(1, 6), fields: cefFields(rest), level: parts[6] ?? '' }
  }
  // The second version names the separator of the fields.
  const isSecond = text.startsWith('LEEF:2')
  const { parts, rest } = splitHeader(text, isSecond ? 6 : 5)
  const fields = leefFields(rest, isSecond ? parts[5] : undefined)
  return { header: parts.slice(1, 5), fields, level: null }
}

function splitHeader(text: string, count: number) {
  const parts: string[] = []
  let part = ''
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at)
    if (parts.length === count) return { parts, rest: text.slice(at) }
    if (char === '\\' && /[\\|]/.test(text.charAt(at + 1))) part += text.charAt(++at)
    else if (char === '|') {
      parts.push(part)
      part = ''
    } else part += char
  }
  return { parts: parts.length < count ? [...parts, part] : parts, rest: '' }
}

type Fields = readonly (readonly [name: string, value: string])[]

/** Values may have blanks: one ends where the next name begins. An equals sign of a value is escaped. */
function cefFields(text: string): Fields {
  const names = [...text.matchAll(/(?<=^|\s)([\w.[\]-]{1,64})=/g)].slice(0, MAX_FIELDS)
  return names.map((match, i): readonly [string, string] => {
    const end = names[i + 1]?.index ?? text.length
    const value = text.slice(match.index + match[0].length, end).trim()
    return [
      match[1] ?? '',
      value.replace(/\\([\\=|nr])/g, (_, char: string) => ESCAPES[char] ?? char),
    ]
  })
}

const ESCAPES: Readonly<Partial<Record<string, string>>> = { n: '\n', r: '\r' }

/** @param named the separator as a character or its code (`x5E`, `0x5E`); a tab by default */
function leefFields(text: string, named = ''): Fields {
  const code = /^0?x([\da-f]{1,4})$/i.exec(named)?.[1]
  const separator =
    code === undefined ? named || '\t' : String.fromCharCode(Number.parseInt(code, 16))
  return text
    .split(separator, MAX_FIELDS)
    .filter((field) => field.includes('='))
    .map((field) => [
      field.slice(0, field.indexOf('=')).trim(),
      field.slice(field.indexOf('=') + 1).trim(),
    ])
}

const WORDS: ReadonlyMap<string, Severity> = new Map([
  ['low', 'INFO'],
  ['medium', 'WARNING'],
  ['high', 'ERROR'],
  ['very-high', 'CRITICAL'],
])

/** From 0 to 10, or a word. */
function severityOf(text: string): Severity | null {
  const word = text.trim().toLowerCase()
  if (!/^\d{1,2}$/.test(word)) return WORDS.get(word) ?? null
  const number = Number(word)
  if (number <= 3) return 'INFO'
  if (number <= 6) return 'WARNING'
  return number <= 8 ? 'ERROR' : 'CRITICAL'
}
