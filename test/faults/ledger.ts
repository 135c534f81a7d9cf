import { SEVERITIES, type Severity } from '../../src/model/event.js'
import { seeded } from '../support/landing.js'
import { DAY_S } from '../../src/model/time.js'

/**
 * The outcome of a body for its sender. A destroyed body was acknowledged, and then damaged on disk by a fault that
 * must be reported, or deleted on purpose.
 */
export type Outcome = 'acknowledged' | 'refused' | 'unknown' | 'destroyed'

interface Line {
  readonly source: string
  readonly severity: Severity
  readonly message: string
}

export interface Body {
  readonly no: number
  readonly text: string
  readonly messages: number
  readonly broken: number
}

export const SOURCES = ['api', 'database', 'web'] as const
const LINES = 40
/** One of this many bodies has a line that is no JSON. */
const BROKEN_EVERY = 4
/** This many bodies repeat the same messages; the first that arrives begins the events. */
const TURN = 6
const WORDS = (
  'disk link node queue cache lease shard token frame relay probe route stage batch index mount quota pulse ' +
  'opened closed moved stalled failed joined parted probed sealed warmed drained merged pinned evicted synced'
).split(' ')

/**
 * The bodies and their outcomes. Every body has a second of its own, so that each rollup shows whether the body was
 * counted, lost or doubled.
 */
export class Ledger {
  readonly #outcomes: (Outcome | null)[] = []
  readonly #seed: number
  readonly #firstSecond: number

  constructor(seed: number, nowMs: number) {
    this.#seed = seed
    // Begins half an hour before yesterday's midnight, so that minutes, hours and days differ and no event is too old.
    this.#firstSecond = Math.floor(nowMs / 1000 / DAY_S) * DAY_S - DAY_S - 1800
  }

  get size(): number {
    return this.#outcomes.length
  }

  /** Whether every body has an outcome. */
  get isSettled(): boolean {
    return !this.#outcomes.includes(null)
  }

  /** The number of bodies with an outcome. */
  count(outcome: Outcome): number {
    return this.#outcomes.filter((one) => one === outcome).length
  }

  /** The number of acknowledged messages. */
  get acknowledged(): number {
    let messages = 0
    for (const [no, outcome] of this.#outcomes.entries())
      if (outcome === 'acknowledged') messages += this.linesOf(no).length
    return messages
  }

  outcomeOf(no: number): Outcome {
    return this.#outcomes[no] ?? 'unknown'
  }

  secondOf(no: number): number {
    return this.#firstSecond + no
  }

  /** The number of the body at a second. */
  bodyOf(second: number): number {
    return second - this.#firstSecond
  }

  /** The next body to send. */
  next(): Body {
    const no = this.#outcomes.push(null) - 1
    const lines = this.linesOf(no)
    const second = this.secondOf(no)
    const texts = lines.map((line, i) =>
      JSON.stringify({ timestamp: new Date(second * 1000 + i * 20).toISOString(), ...line }),
    )
    const broken = this.brokenOf(no)
    if (broken !== null) texts.splice(7, 0, broken)
    return { no, text: texts.join('\n'), messages: LINES, broken: broken === null ? 0 : 1 }
  }

  settle(no: number, outcome: Outcome): void {
    this.#outcomes[no] = outcome
  }

  /** The invalid line of a body; null for none. */
  brokenOf(no: number): string | null {
    return no % BROKEN_EVERY === 0 ? `broken line of body ${no}` : null
  }

  /** Repeats across bodies and within one, new templates, and unique messages. */
  linesOf(no: number): readonly Line[] {
    const random = seeded(this.#seed * 7919 + no)
    const word = (): string => WORDS[Math.floor(random() * WORDS.length)] ?? ''
    const turn = Math.floor(no / TURN)
    return Array.from({ length: LINES }, (_, i) => {
      const source = SOURCES[i % SOURCES.length] ?? 'api'
      const severity = SEVERITIES[(no + i) % SEVERITIES.length] ?? 'INFO'
      if (i % 4 === 0)
        return { source, severity: 'INFO', message: `heartbeat of node ${i} is late, turn ${turn}` }
      if (i === 1) return { source, severity, message: `${word()} ${word()} ${word()} ${word()}` }
      if (i % 8 === 2) return { source, severity, message: `request ${no} was tried again` }
      const ms = Math.floor(random() * 1000)
      return { source, severity, message: `job ${no}-${i} of ${word()} took ${ms} ms` }
    })
  }
}
