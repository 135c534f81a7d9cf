import { TemplateMiner } from '../../src/templates/miner.js'
import { hashText } from '../../src/lib/hash.js'
import { MessageBytes } from '../../src/templates/scan.js'
import { SignatureCache } from '../../src/templates/signature-cache.js'
import { Corpus } from '../data/corpus.js'
import { mixedLog } from '../data/statements.js'
import { watchProcesses } from '../lib/footprint.js'
import type { BenchOptions } from '../lib/options.js'
import type { Metric, ScenarioResult } from '../lib/report.js'
import { gradeFolder, gradeServices, type Grade } from '../mining.js'

const EVENTS = 200_000
const SOURCES = 16
/** Shares of messages with words that no message had before. */
const UNSEEN = [0.02, 0.08]
const MEASURES = ['GA', 'FGA', 'PA', 'FTA'] as const
const LIMIT = { metric: 'limit: bare split at blanks', label: 'bare split' }

/** Speed of template mining on generated messages, and its accuracy on labelled logs when a folder is given. */
export async function runMining(options: BenchOptions, seed: number): Promise<ScenarioResult> {
  const metrics: Metric[] = []
  const add = (name: string, unit: string, value: number, better: Metric['better']): void => {
    const metric = { name, unit, samples: [value], better }
    metrics.push(name.startsWith('messages,') ? { ...metric, limit: LIMIT } : metric)
  }
  const messages = makeMessages(seed)
  const used = watchProcesses(null)
  add('limit: bare split at blanks', '1/s', bareSplits(messages), 'info')
  const mine = createMining(messages)
  const pass = (): number => {
    const startMs = performance.now()
    for (let i = 0; i < messages.length; i++) mine(i)
    return EVENTS / ((performance.now() - startMs) / 1000)
  }
  add('messages, cold', '1/s', pass(), 'higher')
  add('messages, warm', '1/s', Math.max(pass(), pass()), 'higher')
  for (const share of UNSEEN) {
    add(
      `messages, ${100 * share} % of them of an unseen shape`,
      '1/s',
      unseen(seed, share),
      'higher',
    )
  }
  metrics.push(...used())
  const generated = gradeServices(seed)
  for (const measure of MEASURES) {
    add(
      `${measure}, mean of ${generated.length} generated logs`,
      '',
      mean(generated, measure),
      'higher',
    )
  }
  const grades = options.logs === null ? [] : gradeFolder(options.logs)
  for (const measure of MEASURES) {
    if (grades.length > 0)
      add(`${measure}, mean of ${grades.length} sets`, '', mean(grades, measure), 'higher')
    for (const grade of grades) add(`${measure} of ${grade.set}`, '', grade[measure], 'higher')
  }
  const skipped =
    options.logs === null ? ['accuracy: needs --logs FOLDER of NAME.log and NAME.truth'] : []
  const facts = { messages: EVENTS, seed: options.seed }
  return { scenario: 'mining', options: facts, metrics, checks: [], skipped, curves: [] }
}

const mean = (grades: readonly Grade[], measure: (typeof MEASURES)[number]): number =>
  grades.reduce((sum, grade) => sum + grade[measure], 0) / grades.length

/**
 * Measures messages per second of CPU time, after two warm-up rounds: one without new shapes, which
 * makes the templates known, and one with them, for which V8 compiles the path of a miss.
 */
function unseen(seed: number, share: number): number {
  const encoder = new TextEncoder()
  const count = 2 * EVENTS
  const messages = [0, share, share].flatMap((unseenShare, i) =>
    mixedLog(seed + i, count, unseenShare).map(({ service, message }): Message => [
      service,
      encoder.encode(message),
    ]),
  )
  const mine = createMining(messages)
  for (let i = 0; i < 2 * count; i++) mine(i)
  const used = process.cpuUsage()
  for (let i = 2 * count; i < 3 * count; i++) mine(i)
  const { user, system } = process.cpuUsage(used)
  return count / ((user + system) / 1e6)
}

/** Messages per second when each is only decoded and split into words, which every template miner does first. */
function bareSplits(messages: readonly Message[]): number {
  const decoder = new TextDecoder()
  let words = 0
  const pass = (): number => {
    const startMs = performance.now()
    for (const [, message] of messages) words += decoder.decode(message).split(' ').length
    return messages.length / ((performance.now() - startMs) / 1000)
  }
  const best = Math.max(pass(), pass(), pass())
  if (words === 0) throw new Error('bug: no message was split')
  return best
}

type Message = readonly [source: string, message: Uint8Array]

/** Like the service: only a message with an unknown signature goes to the miner. */
function createMining(messages: readonly Message[]): (i: number) => number {
  const miner = new TemplateMiner()
  const shapes = SignatureCache.create(1 << 18)
  const names = new Set(messages.map(([source]) => source))
  const seeds = new Map([...names].map((name) => [name, seedOf(name)]))
  const seedOfMessage = messages.map(([source]) => seeds.get(source) ?? seedOf(source))
  const bytes = new MessageBytes()
  bytes.load(Buffer.concat(messages.map(([, message]) => message)))
  const ends = new Uint32Array(messages.length + 1)
  messages.forEach(([, message], i) => (ends[i + 1] = (ends[i] ?? 0) + message.length))
  const shape = new Int32Array(2)
  return (i) => {
    const seed = seedOfMessage[i]
    bytes.signature(ends[i] ?? 0, ends[i + 1] ?? 0, seed?.[0] ?? 0, seed?.[1] ?? 0, shape)
    const [lo = 0, hi = 0] = shape
    const known = shapes.get(lo, hi)
    if (known !== 0) return known
    const [source = '', message = new Uint8Array(0)] = messages[i] ?? []
    const no = miner.resolve(source, message)
    shapes.put(lo, hi, no)
    return no
  }
}

function seedOf(source: string): Int32Array {
  const seed = new Int32Array(2)
  hashText(source, seed)
  return seed
}

function makeMessages(seed: number): Message[] {
  const stream = {
    seed,
    events: EVENTS,
    startMs: 1_700_000_000_000,
    spanMs: 720_000,
    sources: SOURCES,
  }
  const corpus = new Corpus(stream)
  const encoder = new TextEncoder()
  const messages: Message[] = []
  for (let event = corpus.next(); event !== null; event = corpus.next()) {
    const text: unknown = JSON.parse(`"${event.message}"`)
    messages.push([event.source, encoder.encode(String(text))])
  }
  return messages
}
