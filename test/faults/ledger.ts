import { SEVERITIES, type Severity } from '../../src/model/event.js'
import { seeded } from '../support/landing.js'
import { DAY_S } from '../../src/model/time.js'

/**
 * What the sender of a body knows of it; destroyed was acknowledged, and was then broken on the disk by a
 * fault that must be reported, or deleted on purpose.
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
/** each so many bodies one brings a line that is no JSON */
const BROKEN_EVERY = 4
/** so many bodies repeat the same messages, of which the first to come begins the events */
const TURN = 6
const WORDS = (
  'disk link node queue cache lease shard token frame relay probe route stage batch index mount quota pulse ' +
  'opened closed moved stalled failed joined parted probed sealed warmed drained merged pinned evicted synced'
).split(' ')

/**
 * What was sent and what its senders were told. Every body has a second of its own, so that each rollup
 * tells of each body whether it was counted, left out, or counted twice.
 */
export class Ledger {
  readonly #outcomes: (Outcome | null)[] = []
  readonly #seed: number
  readonly #firstSecond: number

  constructor(seed: number, nowMs: number) {
    this.#seed = seed
    // from yesterday half an hour before midnight on: minutes, hours and days differ, and nothing is too late
    this.#firstSecond = Math.floor(nowMs / 1000 / DAY_S) * DAY_S - DAY_S - 1800
  }

  get size(): number {
    return this.#outcomes.length
  }

  /** whether the fate of all is known, or known to be unknown */
  get isSettled(): boolean {
    return !this.#outcomes.includes(null)
  }

  /** Bodies by what became of them. */
  count(outcome: Outcome): number {
    return this.#outcomes.filter((one) => one === outcome).length
  }

  /** Messages that are acknowledged. */
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

  /** The body of a second. */
  bodyOf(second: number): number {
    return second - this.#firstSecond
  }

  /** The next body to send; until it is settled its fate is unknown. */
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

  /** The line of a body that can only be a dead letter; null when it has none. */
  brokenOf(no: number): string | null {
    return no % BROKEN_EVERY === 0 ? `broken line of body ${no}` : null
  }

  /** Repeats across bodies and within one, templates that nobody has seen, and messages of their own. */
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
