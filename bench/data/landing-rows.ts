import { DictColumn, FixedColumn, StringColumn, toNativeBlock, type Column } from '../../src/clickhouse/native-writer.js'
import { ByteBuffer } from '../../src/lib/byte-buffer.js'
import { toConstantText } from '../../src/model/stored-message.js'
import { TemplateMiner } from '../../src/templates/miner.js'
import { PriorityModel } from '../../src/priority/model.js'
import { VALUE } from '../../src/templates/template-text.js'
import { PRIORITIES } from '../../src/model/event.js'
import { type Corpus, type CorpusEvent, firstPattern, sourceNames, writeMessage } from './corpus.js'
import { cutMessage } from './cut-message.js'
import { KINDS } from './kinds.js'
import { Random } from './random.js'
import { MINUTE_MS } from '../../src/model/time.js'

/** A template as the service stores it. */
export interface MinedTemplate {
  readonly source: string
  /** 16 hex digits. */
  readonly id: string
  readonly text: string
}

const ENUM_TYPE = "Enum8('log' = 0, 'metric' = 1, 'trace' = 2, 'event' = 3)"
const ENUM_SEVERITY = "Enum8('DEBUG' = 0, 'INFO' = 1, 'WARNING' = 2, 'ERROR' = 3, 'CRITICAL' = 4)"
const ENUM_PRIORITY = "Enum8('P1' = 0, 'P2' = 1, 'P3' = 2, 'P4' = 3)"
const DATE_TIME = "DateTime64(3, 'UTC')"
/** The messages of each pattern and source from which templates are mined. */
const MINED = 60
const DEDUP_WINDOW_MS = MINUTE_MS
/** Delay from an event's time to its arrival, when it is on time. */
const ARRIVAL_MS = 200
/** Number of different confidences of a pattern, in steps of 0.01 below the model's. */
const CONFIDENCES = 4

/** The common properties of all messages of one pattern and source. */
interface PatternOfSource {
  readonly template: MinedTemplate
  readonly constantText: string
  readonly priority: number
  readonly confidence: number
  readonly isAscii: boolean
}

interface First {
  readonly id: number
  readonly ms: number
}

/** The first occurrences of the last one or two minutes, by the key that identifies an event. */
class Firsts {
  #recent = new Map<string, First>()
  #older = new Map<string, First>()
  #sinceMs = 0

  get(key: string): First | undefined {
    return this.#recent.get(key) ?? this.#older.get(key)
  }

  set(key: string, first: First): void {
    if (first.ms >= this.#sinceMs + DEDUP_WINDOW_MS) {
      this.#older = this.#recent
      this.#recent = new Map()
      this.#sinceMs = first.ms
    }
    this.#recent.set(key, first)
  }
}

/**
 * Converts corpora to blocks of `landing` without the pipeline, in two microseconds per event. The time of arrival is
 * derived from the event's time. Templates are mined from the patterns, priorities are the model's for the pattern,
 * and equal messages within a minute are one event.
 */
export class LandingRows {
  readonly templates: readonly MinedTemplate[]
  readonly #patterns: ReadonlyMap<string, readonly (PatternOfSource | undefined)[]>
  readonly #random: Random
  readonly #id = new FixedColumn('id', 'UInt64', 8)
  readonly #isNew = new FixedColumn('is_new', 'UInt8', 1)
  readonly #n = new FixedColumn('n', 'Int32', 4)
  readonly #receivedAt = new FixedColumn('received_at', DATE_TIME, 8)
  readonly #ts = new FixedColumn('ts', DATE_TIME, 8)
  readonly #source = new DictColumn('source')
  readonly #type = new FixedColumn('type', ENUM_TYPE, 1)
  readonly #severity = new FixedColumn('severity', ENUM_SEVERITY, 1)
  readonly #priority = new FixedColumn('priority', ENUM_PRIORITY, 1)
  readonly #confidence = new FixedColumn('confidence', 'Float32', 4)
  readonly #modelVersion = new DictColumn('model_version')
  readonly #templateId = new FixedColumn('template_id', 'UInt64', 8)
  readonly #host = new DictColumn('host')
  readonly #environment = new DictColumn('environment')
  readonly #constantText = new DictColumn('constant_text')
  readonly #message = new StringColumn('variables')
  readonly #searchWords = new StringColumn('search_words')
  readonly #columns: readonly Column[] = [
    this.#id,
    this.#isNew,
    this.#n,
    this.#receivedAt,
    this.#ts,
    this.#source,
    this.#type,
    this.#severity,
    this.#priority,
    this.#confidence,
    this.#modelVersion,
    this.#templateId,
    this.#host,
    this.#environment,
    this.#constantText,
    this.#message,
    this.#searchWords,
  ]
  readonly #out = new ByteBuffer(1 << 20)
  readonly #float = new DataView(new ArrayBuffer(4))
  readonly #model = new PriorityModel().modelVersion

  constructor(seed: number, sources: number) {
    this.#random = new Random(seed ^ 0x1a)
    this.#patterns = minePatterns(seed, sources)
    const all = [...this.#patterns.values()].flatMap((some) =>
      some.flatMap((one) => (one === undefined ? [] : [one.template])),
    )
    this.templates = [...new Map(all.map((template) => [template.id, template])).values()]
  }

  /** The names of the columns in `block`. */
  get columns(): readonly string[] {
    return this.#columns.map(({ name }) => name)
  }

  /**
   * Encodes all events of a corpus as one block in the Native format.
   * @param firstId id of the first event; ids are consecutive
   * @param dueMs returns the time of event `i`
   */
  block(corpus: Corpus, firstId: number, dueMs: (i: number) => number): Uint8Array {
    for (const column of this.#columns) column.clear()
    const firsts = new Firsts()
    let rows = 0
    for (let event = corpus.next(); event !== null; event = corpus.next())
      this.#add(event, { id: firstId + rows, dueMs: dueMs(rows++), firsts })
    return toNativeBlock(this.#columns, rows, this.#out).bytes
  }

  #add(
    event: Readonly<CorpusEvent>,
    { id, dueMs, firsts }: { id: number; dueMs: number; firsts: Firsts },
  ): void {
    const pattern = this.#patterns.get(event.source)?.[event.pattern]
    if (pattern === undefined) throw new Error('bug: a pattern without a template')
    const key = `${event.source}\n${event.host}\n${event.message}`
    const first = firsts.get(key)
    const age = event.timestampMs - (first?.ms ?? 0)
    const repeated = first !== undefined && age >= 0 && age < DEDUP_WINDOW_MS
    if (!repeated) firsts.set(key, { id, ms: event.timestampMs })
    this.#id.data.u64(repeated ? first.id : id)
    this.#isNew.data.u8(repeated ? 0 : 1)
    this.#n.data.u32(1)
    this.#receivedAt.data.u64(dueMs + ARRIVAL_MS)
    this.#ts.data.u64(event.timestampMs)
    this.#source.push(event.source)
    this.#type.data.u8(0)
    this.#severity.data.u8(event.severity)
    this.#priority.data.u8(pattern.priority)
    const step = this.#random.below(CONFIDENCES)
    this.#float.setFloat32(0, Math.max(0, pattern.confidence - step / 100), true)
    this.#confidence.data.u32(this.#float.getUint32(0, true))
    this.#modelVersion.push(this.#model)
    this.#templateId.data.u32(Number.parseInt(pattern.template.id.slice(8), 16))
    this.#templateId.data.u32(Number.parseInt(pattern.template.id.slice(0, 8), 16))
    this.#host.push(event.host)
    this.#environment.push('production')
    const message = event.message.includes('\\')
      ? String(JSON.parse(`"${event.message}"`))
      : event.message
    const kept = cutMessage(pattern.constantText, message)
    this.#constantText.push(kept === null ? '' : pattern.constantText)
    this.#message.push(kept ?? message)
    this.#searchWords.push(pattern.isAscii ? '' : wordsOf(`${message} ${event.host}`))
  }
}

const wordsOf = (text: string): string =>
  (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).join(' ')

/** Mines and scores the patterns, by source and index of the pattern. */
function minePatterns(
  seed: number,
  sources: number,
): Map<string, (PatternOfSource | undefined)[]> {
  const miner = new TemplateMiner()
  const model = new PriorityModel()
  const random = new Random(seed)
  const encoder = new TextEncoder()
  const names = sourceNames(sources)
  const resolve = (source: string, text: string): number =>
    miner.rootOf(miner.resolve(source, encoder.encode(writeMessage(text, random))))
  for (let round = 0; round < MINED; round++)
    for (const [i, source] of names.entries())
      for (const [, , text] of KINDS[i % KINDS.length]?.patterns ?? []) resolve(source, text)
  const found = new Map<string, (PatternOfSource | undefined)[]>()
  for (const [i, source] of names.entries()) {
    const ofSource: (PatternOfSource | undefined)[] = []
    const patterns = KINDS[i % KINDS.length]?.patterns ?? []
    for (const [at, [, severity, text]] of patterns.entries()) {
      const no = resolve(source, text)
      const template = { source, id: miner.idOf(no), text: miner.textOf(no) }
      const { priority, confidence } = model.explain(0, severity, template.text)
      const index = firstPattern(i % KINDS.length) + at
      const isAscii = /^\p{ASCII}*$/u.test(text)
      ofSource[index] = {
        template,
        constantText: toConstantText(template.text.split(VALUE)),
        priority: PRIORITIES.indexOf(priority),
        confidence,
        isAscii,
      }
    }
    found.set(source, ofSource)
  }
  return found
}
