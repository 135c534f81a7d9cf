import { TemplateMiner } from '../../src/mining/miner.js'
import { Corpus } from '../data/corpus.js'
import type { BenchOptions } from '../lib/options.js'
import type { Metric, ScenarioResult } from '../lib/report.js'
import { gradeFolder } from '../mining.js'

const EVENTS = 200_000

/** Speed of template mining on generated messages, and its accuracy on labelled logs when a folder is given. */
export async function runMining(options: BenchOptions, seed: number): Promise<ScenarioResult> {
  const metrics: Metric[] = []
  const add = (name: string, unit: string, value: number, better: Metric['better']): void => {
    metrics.push({ name, unit, samples: [value], better })
  }
  const messages = makeMessages(seed)
  const miner = new TemplateMiner()
  const pass = (): number => {
    const startMs = performance.now()
    for (const [source, message] of messages) miner.resolve(source, message)
    return EVENTS / ((performance.now() - startMs) / 1000)
  }
  add('messages, cold', '1/s', pass(), 'higher')
  add('messages, warm', '1/s', Math.max(pass(), pass()), 'higher')
  const grades = options.logs === null ? [] : gradeFolder(options.logs)
  for (const measure of ['GA', 'FGA', 'PA', 'FTA'] as const) {
    if (grades.length > 0) {
      const mean = grades.reduce((sum, grade) => sum + grade[measure], 0) / grades.length
      add(`${measure}, mean of ${grades.length} sets`, '', mean, 'higher')
    }
    for (const grade of grades) add(`${measure} of ${grade.set}`, '', grade[measure], 'higher')
  }
  const skipped =
    options.logs === null ? ['accuracy: needs --logs FOLDER of NAME.log and NAME.truth'] : []
  const facts = { messages: EVENTS, seed: options.seed }
  return { scenario: 'mining', options: facts, metrics, checks: [], skipped, curves: [] }
}

function makeMessages(seed: number): (readonly [source: string, message: Uint8Array])[] {
  const stream = { seed, events: EVENTS, startMs: 1_700_000_000_000, spanMs: 720_000, sources: 16 }
  const corpus = new Corpus(stream)
  const encoder = new TextEncoder()
  const messages: (readonly [string, Uint8Array])[] = []
  for (let event = corpus.next(); event !== null; event = corpus.next()) {
    const text: unknown = JSON.parse(`"${event.message}"`)
    messages.push([event.source, encoder.encode(String(text))])
  }
  return messages
}
