import { severityOfNumber } from '../../../model/severity.js'
import { comparedName } from '../../formats/aliases.js'
import { isNoInner } from '../../formats/text-forms.js'
import type { Clock } from '../../formats/zone.js'
import type { RecordFeed } from '../record-feed.js'
import { FACILITIES, FINE_LEVELS } from './priority.js'
import { BSD_TIME_BYTES, type Extent, isSame, Times } from './times.js'

const BLANK = 0x20
const QUOTE = 0x22
const DASH = 0x2d
const ZERO = 0x30
const ONE = 0x31
const COLON = 0x3a
const LESS = 0x3c
const GREATER = 0x3e
const BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSING = 0x5d

const MAX_HOST = 255
const MAX_PROGRAM = 64
const MAX_PID = 32
const MAX_MSGID = 64
/** Of 24 facilities. */
const PRIORITIES = 192

const isDigit = (byte: number | undefined): boolean =>
  byte !== undefined && byte >= ZERO && byte <= 0x39

/** What a priority says beside the severity. */
interface Priority {
  readonly severity: string
  /** The members of its tags. */
  readonly tags: string
}

/**
 * Adds messages of RFC 5424 and RFC 3164 without making objects of them: those with a time, a plain program, and plain
 * structured data. The others are to be read by the forms of `formats/text-forms.ts`; these say what both mean.
 */
export class SimpleMessages {
  readonly #bytes: Buffer
  readonly #feed: RecordFeed
  readonly #sender: string
  readonly #times: Times
  readonly #priorities: (Priority | undefined)[] = []
  /** The texts that the feed was given last. */
  readonly #source: Extent = { from: 0, to: 0 }
  readonly #host: Extent = { from: 0, to: 0 }
  #severity = ''
  #tags = ''
  /** The members that structured data stands for; null for what is not plain. */
  readonly #data = new Map<string, string | null>()
  /** Where the message is read. */
  #at = 0
  #end = 0
  #timeMs = 0
  readonly #token: Extent = { from: 0, to: 0 }

  /** @param sender is the host of messages that name none */
  constructor(
    bytes: Buffer,
    {
      feed,
      sender,
      clock,
    }: { readonly feed: RecordFeed; readonly sender: string; readonly clock: Clock },
  ) {
    this.#bytes = bytes
    this.#feed = feed
    this.#sender = sender
    this.#times = new Times(bytes, clock)
    feed.set('host', sender)
  }

  /** @returns false for a message that is not simple */
  take(from: number, to: number): boolean {
    this.#at = from
    this.#end = to
    const priority = this.#readPriority()
    if (priority === null) return false
    const bytes = this.#bytes
    const isNew = bytes[this.#at] === ONE && bytes[this.#at + 1] === BLANK
    const tags = isNew ? this.#readNew(priority) : this.#readOld(priority)
    if (tags === null || this.#at >= to || !isNoInner(bytes, this.#at, to)) return false
    if (priority.severity !== this.#severity)
      this.#feed.set('severity', (this.#severity = priority.severity))
    if (tags !== this.#tags) this.#feed.set('tags', (this.#tags = tags))
    return this.#feed.put(this.#timeMs, this.#at, to)
  }

  #readPriority(): Priority | null {
    const bytes = this.#bytes
    if (bytes[this.#at] !== LESS) return null
    let at = this.#at + 1
    let number = 0
    while (isDigit(bytes[at]) && at <= this.#at + 3)
      number = number * 10 + (bytes[at++] ?? 0) - ZERO
    if (at === this.#at + 1 || bytes[at] !== GREATER || number >= PRIORITIES) return null
    this.#at = at + 1
    return (this.#priorities[number] ??= priorityOf(number))
  }

  /** Reads the head of RFC 5424. @returns the tags; null for another one */
  #readNew(priority: Priority): string | null {
    this.#at += 2
    if (!this.#readNewTime() || !this.#readToken(MAX_HOST) || !this.#setHost()) return null
    if (!this.#readToken(MAX_PROGRAM) || !this.#setSource()) return null
    let tags = ''
    for (const [name, most] of NEW_TAGS) {
      if (!this.#readToken(most)) return null
      tags += this.#tag(name)
    }
    const data = this.#readData()
    if (data === null) return null
    this.#skipMark()
    tags = data + tags
    return tags === '' ? priority.tags : `{${tags}${priority.tags.slice(1)}`
  }

  /** Reads the structured data and the blank behind it. @returns the members of the tags; null for others than plain ones */
  #readData(): string | null {
    const bytes = this.#bytes
    if (bytes[this.#at] === DASH && bytes[this.#at + 1] === BLANK) {
      this.#at += 2
      return ''
    }
    if (bytes[this.#at] !== BRACKET) return null
    const to = bytes.indexOf(DATA_END, this.#at)
    if (to === -1 || to >= this.#end || to - this.#at > MAX_DATA) return null
    const text = bytes.toString('latin1', this.#at, to + 1)
    this.#at = to + DATA_END.length
    const known = this.#data.get(text)
    if (known !== undefined) return known
    const data = membersOf(text)
    if (this.#data.size < MAX_DATAS) this.#data.set(text, data)
    return data
  }

  #readNewTime(): boolean {
    if (this.#bytes[this.#at] === DASH && this.#bytes[this.#at + 1] === BLANK) {
      this.#timeMs = 0
      this.#at += 2
      return true
    }
    return this.#readIso()
  }

  #readIso(): boolean {
    const to = this.#bytes.indexOf(BLANK, this.#at)
    const ms = to === -1 || to >= this.#end ? null : this.#times.iso(this.#at, to)
    if (ms === null) return false
    this.#timeMs = ms
    this.#at = to + 1
    return true
  }

  /** Reads the head of RFC 3164, with either kind of time. @returns the tags; null for another one */
  #readOld(priority: Priority): string | null {
    if (isDigit(this.#bytes[this.#at])) {
      if (!this.#readIso()) return null
    } else {
      const ms = this.#times.bsd(this.#at, this.#end)
      if (ms === null) return null
      this.#timeMs = ms
      this.#at += BSD_TIME_BYTES + 1
    }
    const hasHost = this.#readToken(MAX_HOST) && this.#bytes[this.#token.to - 1] !== COLON
    if (!hasHost || !this.#setHost() || !this.#readProgram()) return null
    const pid = this.#readPid()
    if (pid === null || this.#bytes[this.#at] !== COLON || this.#bytes[this.#at + 1] !== BLANK)
      return null
    this.#at += 2
    return pid === '' ? priority.tags : `{${pid}${priority.tags.slice(1)}`
  }

  /** Reads the name before a colon or the number of a process. */
  #readProgram(): boolean {
    const bytes = this.#bytes
    const from = this.#at
    let at = from
    while (at < this.#end && at - from < MAX_PROGRAM && isOfName(bytes[at] ?? 0)) at++
    this.#token.from = from
    this.#token.to = at
    this.#at = at
    const isName = at > from && isLetter(bytes[from] ?? 0)
    // These are heads of messages.
    return isName && !/^(?:CEF|LEEF)$/.test(this.#text(from, at)) && this.#setSource()
  }

  /** @returns the member of the tags, '' for none, null for another text */
  #readPid(): string | null {
    if (this.#bytes[this.#at] !== BRACKET) return ''
    const from = this.#at + 1
    let at = from
    while (at < this.#end && at - from < MAX_PID && isDigit(this.#bytes[at])) at++
    if (at === from || this.#bytes[at] !== CLOSING) return null
    this.#token.from = from
    this.#token.to = at
    this.#at = at + 1
    return this.#tag('pid')
  }

  /** Reads printable ASCII up to a blank. @returns false for another text */
  #readToken(most: number): boolean {
    const bytes = this.#bytes
    const from = this.#at
    let at = from
    for (; at < this.#end && bytes[at] !== BLANK; at++) {
      const byte = bytes[at] ?? 0
      if (byte < BLANK || byte > 0x7e || byte === QUOTE || byte === BACKSLASH) return false
    }
    this.#token.from = from
    this.#token.to = at
    this.#at = at + 1
    // In brackets there may be a word for a missing value.
    return at > from && at < this.#end && at - from <= most && bytes[from] !== BRACKET
  }

  /** Whether the token is a lone dash, which stands for a missing value. */
  get #isMissing(): boolean {
    return this.#token.to - this.#token.from === 1 && this.#bytes[this.#token.from] === DASH
  }

  #tag(name: string): string {
    return this.#isMissing ? '' : `"${name}":"${this.#text(this.#token.from, this.#token.to)}",`
  }

  #text(from: number, to: number): string {
    return this.#bytes.toString('latin1', from, to)
  }

  #setHost(): true {
    return this.#set('host', this.#host, this.#sender)
  }

  #setSource(): true {
    return this.#set('source', this.#source, '')
  }

  /** Gives the token to the feed, unless it has the same text. */
  #set(member: 'host' | 'source', last: Extent, none: string): true {
    const { from, to } = this.#token
    if (!isSame(this.#bytes, last, from, to))
      this.#feed.set(member, this.#isMissing ? none : this.#text(from, to))
    last.from = from
    last.to = to
    return true
  }

  /** Passes over a byte order mark. */
  #skipMark(): void {
    const { length } = MARK
    const bytes = this.#bytes
    if (
      bytes[this.#at] === MARK[0] &&
      bytes.compare(MARK, 0, length, this.#at, this.#at + length) === 0
    )
      this.#at += length
  }
}

const MARK = Buffer.from('\uFEFF')
const NEW_TAGS = [
  ['pid', 128],
  ['msgid', MAX_MSGID],
] as const

function priorityOf(number: number): Priority {
  const facility = FACILITIES[number >> 3]
  const level = FINE_LEVELS[number % 8]
  const tags: Record<string, string> = {}
  if (facility !== undefined) tags['facility'] = facility
  if (level !== undefined) tags['severity_text'] = level
  return { severity: severityOfNumber(number % 8, 'syslog') ?? '', tags: JSON.stringify(tags) }
}

/**
 * Returns the parameters of structured data as members of an object: of plain ASCII, none of them twice, none that becomes something
 * else. @returns null for others
 */
function membersOf(text: string): string | null {
  if (!PLAIN_DATA.test(text)) return null
  const names = new Set<string>()
  let members = ''
  let count = 0
  for (const [, name = '', value = ''] of text.matchAll(PARAM)) {
    count += 1
    if (OTHER_PARAMS.has(comparedName(name)) || names.has(name)) return null
    names.add(name)
    if (value !== '') members += `"${name}":"${value}",`
  }
  return count > MAX_PARAMS ? null : members
}

/** Elements such as `[meta@32473 run="x" seq="7"]`. */
const PLAIN_DATA = /^(?:\[[\w@.-]{1,64}(?: [A-Za-z][\w.-]{0,63}="[ !#-[^-~]{0,255}"){0,16}\])+$/
const PARAM = / ([A-Za-z][\w.-]{0,63})="([^"]*)"/g
/** Those that become a field, or have the name of another tag. */
const OTHER_PARAMS: ReadonlySet<string> = new Set(
  'traceid spanid pid msgid program facility severitytext'.split(' '),
)
const MAX_PARAMS = 12
const MAX_DATA = 1024
/** Limit of the structured data that is remembered for a batch. */
const MAX_DATAS = 256
const DATA_END = Buffer.from('] ')

const isLetter = (byte: number): boolean => (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a

/** Whether a byte is one of `A-Za-z0-9_./-`. */
const isOfName = (byte: number): boolean =>
  isLetter(byte) || (byte >= DASH && byte <= 0x39) || byte === 0x5f
