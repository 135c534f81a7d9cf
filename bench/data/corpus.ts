import { SEVERITIES } from '../../src/model/event.js'
import { KINDS, type Kind } from './kinds.js'
import { Random } from './random.js'
import { HOSTS, VALUES, type Value } from './values.js'
import { DAY_MS } from '../../src/model/time.js'

export interface CorpusOptions {
  /** The same options give the same bytes on every machine. */
  readonly seed: number
  readonly events: number
  /** Time of the first event, ms since 1970; no event is later than start + span. */
  readonly startMs: number
  /** The events are spread evenly over this time; late ones are up to three days before it. */
  readonly spanMs: number
  /** At least 1; the first sixteen are one of each kind. */
  readonly sources: number
  /** Tags of each event; without them the stream is the same. */
  readonly attributes?: number
}

/** One message. The generator reuses one object for all messages. */
export interface CorpusEvent {
  timestampMs: number
  source: string
  host: string
  /** Index into SEVERITIES. */
  severity: number
  /** Escaped for a JSON string, without the quotes. */
  message: string
  /** JSON, '' for none. */
  tags: string
  /** Index of its pattern among the patterns of all kinds. */
  pattern: number
}

export interface Block {
  readonly bytes: Buffer
  readonly events: number
}

/** Share of messages that repeat one of the last few seconds (at the default rate). */
const REPEAT_SHARE = 0.02
const RECENT = 512
const RECENT_EVERY = 8
/** Share of messages that repeat one from minutes ago. */
const ECHO_SHARE = 0.005
const ECHOES = 2048
const ECHO_EVERY = 64
/** Share of messages that begin a run of equal ones, and the length of the run. */
const RUN_SHARE = 0.001
const RUN_LENGTH = 25
const LATE_SHARE = 0.01
const LATE_MS = 600_000
const VERY_LATE_SHARE = 0.0005
const VERY_LATE_MS = 3 * DAY_MS
const SHUFFLED_SHARE = 0.2
const SHUFFLED_MS = 80

/** Returns the names of the sources, whose kinds alternate. */
export const sourceNames = (sources: number): string[] =>
  Array.from({ length: sources }, (_, i) => {
    const name = KINDS[i % KINDS.length]?.name ?? ''
    return i < KINDS.length ? name : `${name}-${1 + Math.floor(i / KINDS.length)}`
  })

/**
 * A stream of system log messages as NDJSON of `{timestamp, source, host, severity, message}`, about
 * 246 bytes a line, with repeats, runs of equal messages, and events that come late or out of order.
 * It uses the memory of one block.
 */
export class Corpus {
  readonly #options: CorpusOptions
  readonly #random: Random
  readonly #tagRandom: Random
  readonly #kinds: readonly CompiledKind[]
  readonly #recent = new Ring(RECENT)
  readonly #echoes = new Ring(ECHOES)
  readonly #current: CorpusEvent = { timestampMs: 0, source: '', host: '', severity: 0, message: '', tags: '', pattern: 0 }
  #made = 0
  #runLeft = 0
  #prefixSecond = -1
  #prefix = ''

  constructor(options: CorpusOptions) {
    if (!(options.sources >= 1)) throw new RangeError(`${options.sources} sources: at least 1`)
    this.#options = options
    this.#random = new Random(options.seed)
    this.#tagRandom = new Random(options.seed ^ 0x7a65)
    this.#kinds = compileKinds(options.sources)
  }

  /** @returns the next message, null after the last; valid until the next call */
  next(): Readonly<CorpusEvent> | null {
    const { events, startMs, spanMs } = this.#options
    if (this.#made >= events) return null
    this.#choose()
    const onTime = startMs + Math.floor((this.#made / events) * spanMs)
    this.#current.timestampMs = onTime - this.#delayMs()
    this.#made++
    return this.#current
  }

  /** @returns complete lines, about `maxBytes` bytes of them; null after the last */
  block(maxBytes: number, see?: (event: Readonly<CorpusEvent>) => void): Block | null {
    let text = ''
    let events = 0
    while (text.length < maxBytes) {
      const event = this.next()
      if (event === null) break
      see?.(event)
      text += this.#line(event)
      events++
    }
    return events === 0 ? null : { bytes: Buffer.from(text, 'utf8'), events }
  }

  #line({ timestampMs, source, host, severity, message, tags }: Readonly<CorpusEvent>): string {
    const second = Math.floor(timestampMs / 1000)
    if (second !== this.#prefixSecond) {
      this.#prefixSecond = second
      this.#prefix = `{"timestamp":"${new Date(second * 1000).toISOString().slice(0, 20)}`
    }
    const ms = timestampMs - second * 1000
    return `${this.#prefix}${ms < 10 ? '00' : ms < 100 ? '0' : ''}${ms}Z","source":"${source}","host":"${host}","severity":"${SEVERITIES[severity]}","message":"${message}"${tags === '' ? '' : `,"tags":${tags}`}}\n`
  }

  #choose(): void {
    const random = this.#random
    if (this.#runLeft > 0) {
      this.#runLeft--
      return
    }
    const dice = random.share()
    if (dice < RUN_SHARE) this.#runLeft = random.between(2, RUN_LENGTH)
    if (dice > 1 - REPEAT_SHARE && this.#recent.items.length > 0)
      this.#copy(random.pick(this.#recent.items))
    else if (dice > 1 - REPEAT_SHARE - ECHO_SHARE && this.#echoes.items.length > 0)
      this.#copy(random.pick(this.#echoes.items))
    else this.#fresh()
    this.#remember()
  }

  #fresh(): void {
    const random = this.#random
    const kind = pickWeighted(this.#kinds, random)
    const pattern = pickWeighted(kind.patterns, random)
    const source = random.skewed(kind.sources)
    const { values, texts } = pattern
    let message = texts[0] ?? ''
    for (let i = 0; i < values.length; i++) message += (values[i]?.(random) ?? '') + (texts[i + 1] ?? '')
    const current = this.#current
    current.source = source.name
    current.host = HOSTS[(source.firstHost + random.below(12)) % HOSTS.length] ?? ''
    current.severity = pattern.severity
    current.message = message
    current.tags = writeTags(this.#options.attributes ?? 0, this.#tagRandom)
    current.pattern = pattern.no
  }

  #copy({ source, host, severity, message, tags, pattern }: CorpusEvent): void {
    Object.assign(this.#current, { source, host, severity, message, tags, pattern })
  }

  #remember(): void {
    if (this.#made % RECENT_EVERY === 0) this.#recent.keep(this.#current)
    if (this.#made % ECHO_EVERY === 0) this.#echoes.keep(this.#current)
  }

  #delayMs(): number {
    const random = this.#random
    const dice = random.share()
    if (dice < VERY_LATE_SHARE) return random.logBetween(LATE_MS, VERY_LATE_MS)
    if (dice < LATE_SHARE) return random.logBetween(1000, LATE_MS)
    return dice > 1 - SHUFFLED_SHARE ? random.below(SHUFFLED_MS) : 0
  }
}

const METHODS = ['GET', 'GET', 'GET', 'POST', 'PUT', 'DELETE']
const STATUSES = [200, 200, 200, 201, 204, 301, 404, 500, 503]
const REGIONS = ['eu-west', 'eu-east', 'us-east', 'ap-south']

/** Tags such as those of a web service: some of few values, a user of half a million, numbers; beyond five, fields in turn of these kinds. */
function writeTags(attributes: number, random: Random): string {
  if (attributes === 0) return ''
  const members = [
    `"http.method":"${random.pick(METHODS)}"`,
    `"http.status":${random.pick(STATUSES)}`,
    `"region":"${random.pick(REGIONS)}"`,
    `"user.id":"u${random.below(500_000)}"`,
    `"duration_ms":${random.logBetween(1, 30_000)}`,
  ].slice(0, attributes)
  for (let i = members.length; i < attributes; i++) {
    const value =
      i % 4 === 0
        ? `"v${random.below(1_000_000)}"`
        : i % 4 === 1
          ? random.below(1000)
          : `"${random.pick(REGIONS)}"`
    members.push(`"field_${i}":${value}`)
  }
  return `{${members.join(',')}}`
}

/** A ring of the last events. */
class Ring {
  readonly items: CorpusEvent[] = []
  readonly #size: number
  #next = 0

  constructor(size: number) {
    this.#size = size
  }

  keep(event: CorpusEvent): void {
    this.items[this.#next] = { ...event }
    this.#next = (this.#next + 1) % this.#size
  }
}

interface Weighted {
  /** Cumulative weight, 1 for the last. */
  readonly until: number
}

interface CompiledPattern extends Weighted {
  readonly no: number
  readonly severity: number
  /** Texts around the values, one more than these, escaped for JSON. */
  readonly texts: readonly string[]
  readonly values: readonly Value[]
}

interface CompiledKind extends Weighted {
  readonly patterns: readonly CompiledPattern[]
  readonly sources: readonly { readonly name: string; readonly firstHost: number }[]
}

function pickWeighted<T extends Weighted>(items: readonly T[], random: Random): T {
  const dice = random.share()
  for (const item of items) if (dice < item.until) return item
  throw new Error('bug: weights do not reach 1')
}

function withUntil<T>(items: readonly T[], weight: (item: T) => number): (T & Weighted)[] {
  const total = items.reduce((sum, item) => sum + weight(item), 0)
  let sum = 0
  return items.map((item, i) => {
    sum += weight(item)
    return { ...item, until: i === items.length - 1 ? 1 : sum / total }
  })
}

function compileKinds(sources: number): CompiledKind[] {
  const named = sourceNames(sources).map((name, i) => ({ name, firstHost: i * 7 }))
  const used = KINDS.slice(0, sources).map((kind, i) => ({
    weight: kind.weight,
    patterns: compilePatterns(kind, firstPattern(i)),
    sources: named.filter((_, at) => at % KINDS.length === i),
  }))
  return withUntil(used, (kind) => kind.weight)
}

/** Returns the index of a kind's first pattern. */
export const firstPattern = (kind: number): number =>
  KINDS.slice(0, kind).reduce((sum, { patterns }) => sum + patterns.length, 0)

const compilePatterns = (kind: Kind, first: number): CompiledPattern[] =>
  withUntil(
    kind.patterns.map(([weight, severity, text], i) => {
      const parts = text.split(/<([a-z0-9]+)>/)
      const values = parts.filter((_, i) => i % 2 === 1).map(valueNamed)
      const texts = parts.filter((_, i) => i % 2 === 0).map(escaped)
      return { no: first + i, weight, severity: SEVERITIES.indexOf(severity), texts, values }
    }),
    (pattern) => pattern.weight,
  )

/** Writes a message of a pattern with random values. */
export function writeMessage(pattern: string, random: Random): string {
  return pattern.replaceAll(/<([a-z0-9]+)>/g, (_, name: string) => valueNamed(name)(random))
}

const isValueName = (name: string): name is keyof typeof VALUES => Object.hasOwn(VALUES, name)

function valueNamed(name: string): Value {
  if (!isValueName(name)) throw new Error(`bug: no value is called <${name}>`)
  return VALUES[name]
}

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1)
