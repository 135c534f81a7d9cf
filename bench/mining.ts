import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { HELD_BACK, labelledLog, SERVICES } from './data/statements.js'
import { TemplateMiner } from '../src/templates/miner.js'

/**
 * Accuracy of template mining in the measures of LogPub: share of messages and of templates whose
 * group is exactly right (GA, FGA), and whose text is exactly right too (PA, FTA).
 */
export interface Grade {
  readonly set: string
  readonly GA: number
  readonly FGA: number
  readonly PA: number
  readonly FTA: number
  readonly predicted: number
  readonly expected: number
  /** The share of messages whose template was merged later. */
  readonly redirected: number
}

/** Grades every `NAME.log` that has a `NAME.truth` (`EventId<TAB>EventTemplate` per line) in a folder. */
export function gradeFolder(folder: string): Grade[] {
  const sets = readdirSync(folder)
    .filter((name) => name.endsWith('.truth'))
    .map((name) => name.slice(0, -'.truth'.length))
  return sets.sort().map((set) => {
    const messages = lines(join(folder, `${set}.log`))
    const truth = lines(join(folder, `${set}.truth`)).map((line) =>
      line.slice(line.indexOf('\t') + 1),
    )
    return grade(set, messages, truth)
  })
}

/** Grades the generated logs (data/statements.ts). */
export const gradeServices = (seed: number, services = SERVICES): Grade[] =>
  Object.keys(services).map((service) => {
    const { messages, truth } = labelledLog(service, seed, 4000)
    return grade(service, messages, truth)
  })

/** Mines the messages in their order and compares each message's final template with the truth. */
export function grade(set: string, messages: readonly string[], truth: readonly string[]): Grade {
  const miner = new TemplateMiner()
  const encoder = new TextEncoder()
  const numbers = messages.map((message) => miner.resolve(set, encoder.encode(message)))
  const texts = numbers.map((no) => miner.textOf(miner.rootOf(no)))
  const moved = numbers.filter((no) => miner.rootOf(no) !== no).length
  return { set, ...compare(truth, texts), redirected: moved / messages.length }
}

/** The templates of a log, most frequent first, for reading. */
export function listTemplates(messages: readonly string[]): [text: string, count: number][] {
  const counts = new Map<string, number>()
  for (const text of finalTexts(messages)) counts.set(text, (counts.get(text) ?? 0) + 1)
  return [...counts].sort((a, b) => b[1] - a[1])
}

/** The text of each message's template after all messages. */
export function finalTexts(messages: readonly string[]): readonly string[] {
  const miner = new TemplateMiner()
  const encoder = new TextEncoder()
  const numbers = messages.map((message) => miner.resolve('log', encoder.encode(message)))
  return numbers.map((no) => miner.textOf(miner.rootOf(no)))
}

function groups(keys: readonly string[]): Map<string, number[]> {
  const found = new Map<string, number[]>()
  for (const [i, key] of keys.entries()) {
    const group = found.get(key)
    if (group === undefined) found.set(key, [i])
    else group.push(i)
  }
  return found
}

const f1 = (a: number, b: number): number => (a + b === 0 ? 0 : (2 * a * b) / (a + b))

function compare(truth: readonly string[], texts: readonly string[]) {
  const want = groups(truth)
  const have = groups(texts)
  let rightGroups = 0
  let groupedMessages = 0
  for (const members of want.values()) {
    const text = texts[members[0] ?? 0] ?? ''
    const same =
      have.get(text)?.length === members.length && members.every((i) => texts[i] === text)
    if (!same) continue
    rightGroups++
    groupedMessages += members.length
  }
  const rightTexts = [...have].filter(([text, members]) => members.every((i) => truth[i] === text))
  const parsed = texts.filter((text, i) => text === truth[i]).length
  return {
    GA: groupedMessages / truth.length,
    FGA: f1(rightGroups / have.size, rightGroups / want.size),
    PA: parsed / truth.length,
    FTA: f1(rightTexts.length / have.size, rightTexts.length / want.size),
    predicted: have.size,
    expected: want.size,
  }
}

function lines(path: string): string[] {
  const all = readFileSync(path, 'utf8').split('\n')
  if (all.at(-1) === '') all.pop()
  return all
}

/** Markdown table of grades, with the averages last. */
export function gradeTable(grades: readonly Grade[]): string {
  const mean = (of: (one: Grade) => number) =>
    grades.reduce((sum, one) => sum + of(one), 0) / grades.length
  const cell = (value: number) => value.toFixed(3)
  const row = (name: string, values: readonly string[]) => `| ${[name, ...values].join(' | ')} |`
  const measures = (of: (pick: (one: Grade) => number) => number) => [
    ...[(g: Grade) => g.GA, (g: Grade) => g.FGA, (g: Grade) => g.PA, (g: Grade) => g.FTA].map(
      (pick) => cell(of(pick)),
    ),
    `${(100 * of((g) => g.redirected)).toFixed(2)} %`,
  ]
  return [
    '| set | GA | FGA | PA | FTA | redirected | templates found/true |',
    '|---|---|---|---|---|---|---|',
    ...grades.map((g) =>
      row(g.set, [...measures((pick) => pick(g)), `${g.predicted}/${g.expected}`]),
    ),
    row('average', [...measures(mean), '']),
  ].join('\n')
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const [folder, option] = process.argv.slice(2)
  if (folder === undefined)
    throw new Error('usage: mining.js FOLDER | mining.js FILE --templates | mining.js --services')
  if (option === '--templates') {
    for (const [text, count] of listTemplates(lines(folder))) console.log(`${count}\t${text}`)
  } else {
    const generated = (): Grade[] => [...gradeServices(1), ...gradeServices(1, HELD_BACK)]
    console.log(gradeTable(folder === '--services' ? generated() : gradeFolder(folder)))
  }
}
