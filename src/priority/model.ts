import { PRIORITIES, SEVERITIES, type Priority, type Severity } from '../model/event.js'
import type { TemplateRegistry } from '../templates/registry.js'
import {
  chances,
  fit,
  nothingLearned,
  pointsFor,
  scaleWord,
  SEVERITY_POINTS,
  type Learned,
  type Sample,
} from './fit.js'
import { MAX_CORRECTIONS, withCorrection, type Correction, type PriorityState } from './state.js'
import { BUCKETS, bucketOf, pointsOf, wordsOf } from './words.js'

/*
 * How an event gets its priority:
 *
 * 1. The model scores every new event: points for its severity, for the words of its template (words.ts), for a rare
 *    template and for a burst. Thresholds on the score give the chances of P1 to P4, the most likely is assigned.
 * 2. If a person corrected the priority of the event's template, that one applies instead (overrides.ts). Merged templates
 *    share it.
 * 3. A correction (corrections.ts) stores the template's priority, teaches the model, and moves the event's counts to
 *    the new priority in every rollup.
 * 4. The model refits its points to all corrections (fit.ts), with uncorrected templates as a counterweight, so that similar
 *    templates follow after a few corrections that agree.
 * 5. Corrections and what was learned are stored and the same on every instance (store.ts).
 */

/** A score is looked up in steps of 1/32 from -16 to 16. */
const STEPS = 1024
const STEPS_PER_POINT = 32
const CONFIDENCE_STEPS = 64
const LOWEST_SCORE = -16

/** Points for each halving of a template's share of all messages, from the 6th to the 16th. */
const POINTS_PER_RARITY_BIT = 0.06
const RARITY_FROM_BITS = 6
const RARITY_MAX_BITS = 10
/** Points for each doubling over the usual rate of a template, up to the 5th. */
const POINTS_PER_BURST_BIT = 0.25
const BURST_MAX_BITS = 5
/** The least number of messages in a window that can be a burst. */
const BURST_FROM = 32
const WINDOW_SECONDS = 10
const USUAL_SHARE = 0.2

/** Uncorrected templates that the fit includes, so that only priorities like the corrected ones move. */
const MAX_ANCHORS = 400
const ANCHOR_WEIGHT = 0.3
/** Share of the weight of all corrections, so that corrections that agree always prevail. */
const ANCHOR_SHARE = 0.15
/** A word gets its full points when this many corrected templates contain it. */
const FULL_SUPPORT = 6
const LEVELS = SEVERITIES.length
const P2 = 1
const P3 = 2
const DEBUG = 0
const CRITICAL = 4

export interface Contribution {
  /** `severity`, `word:<word>`, `learned:<word>`, `learned:severity`, `rarity` or `burst`. */
  readonly feature: string
  /** Points added to the score; positive is more urgent. */
  readonly points: number
}

export interface PriorityExplanation {
  readonly priority: Priority
  readonly confidence: number
  readonly score: number
  /** Chance of each priority before the bounds by severity. */
  readonly chances: Readonly<Record<Priority, number>>
  readonly contributions: readonly Contribution[]
  readonly modelVersion: string
}

/**
 * Scores messages for priority: a proportional-odds (ordinal logistic) model.
 *
 * score = severity + words of the template + rarity of the template + burst, in points. Three thresholds on the score
 * give the chances of P1..P4; the chance of the assigned one is the confidence. CRITICAL is P1 or P2 whatever the
 * score, DEBUG P3 or P4.
 */
export class PriorityModel {
  /** Result of `assign`: index of PRIORITIES. */
  priority = 0
  /** Result of `assign`: 0..1. */
  confidence = 0
  readonly #maxTemplates: number
  #learned: Learned = nothingLearned()
  #version = 0
  #corrections: readonly Correction[] = []
  /** Number of templates that have a word of each bucket. */
  readonly #spread = new Uint32Array(BUCKETS)
  #templates = 0
  /** By key, lowest first. */
  readonly #anchors: Anchor[] = []
  readonly #table = priorityTable()
  #count = new Float64Array(256)
  #total = 0
  #base = new Float32Array(256)
  #words: (Uint16Array | undefined)[] = []
  #wordPoints = new Float32Array(256 * LEVELS)
  #stamp = new Int32Array(256).fill(-1)
  #window = new Int32Array(256)
  #inWindow = new Float64Array(256)
  #usual = new Float32Array(256)

  /** @param maxTemplates templates above this number are scored by severity only */
  constructor(maxTemplates = 250_000) {
    this.#maxTemplates = maxTemplates
  }

  /** Changes with every correction. */
  get modelVersion(): string {
    return `ordinal-1.${this.#version}`
  }

  /** Registers the words of templates as they become known. */
  watch(templates: TemplateRegistry): void {
    templates.onRenumber((oldNos) => this.#renumber(oldNos))
    templates.onChange((changes) => {
      for (const { no, text } of changes) if (no !== 0) this.register(no, text)
    })
  }

  /** Registers the words of a template; called again when its text changed. */
  register(templateNo: number, text: string): void {
    if (templateNo > this.#maxTemplates) return
    this.#reserve(templateNo)
    const words = wordsOf(text)
    const buckets = Uint16Array.from(words, bucketOf)
    if (this.#words[templateNo] === undefined) {
      this.#templates++
      for (const bucket of buckets) this.#spread[bucket] = (this.#spread[bucket] ?? 0) + 1
      this.#keepAnchor(words)
    }
    this.#words[templateNo] = buckets
    this.#base[templateNo] = basePoints(words)
    this.#stamp[templateNo] = -1
  }

  /**
   * Sets `priority` and `confidence` for `n` messages of a template in one second.
   * No allocation; bench/micro/mining.bench.ts.
   * @param epochSecond time of the messages; messages from before the last window count to it
   */
  assign(templateNo: number, severityIndex: number, epochSecond: number, n: number): void {
    let score = (SEVERITY_POINTS[severityIndex] ?? 0) + (this.#learned.severity[severityIndex] ?? 0)
    if (templateNo < this.#count.length) {
      if (this.#stamp[templateNo] !== this.#version) this.#scoreWords(templateNo)
      const seen = (this.#count[templateNo] ?? 0) + n
      this.#count[templateNo] = seen
      this.#total += n
      score += this.#wordPoints[templateNo * LEVELS + severityIndex] ?? 0
      score += rarityPoints(this.#total, seen) + this.#burst(templateNo, epochSecond, n)
    }
    this.#decide(score, severityIndex)
  }

  /** Learns that a template of this severity should have this priority. */
  learn(templateNo: number, severity: Severity, priority: Priority, text: string): void {
    if (templateNo < this.#maxTemplates && this.#words[templateNo] === undefined) {
      this.register(templateNo, text)
    }
    this.restore(withCorrection(this.toJSON(), { severity, priority, text }))
  }

  /** Explains the result of `assign` without counting a message. */
  explain(templateNo: number, severity: Severity, text: string): PriorityExplanation {
    const index = SEVERITIES.indexOf(severity)
    const contributions: Contribution[] = [
      { feature: 'severity', points: SEVERITY_POINTS[index] ?? 0 },
      { feature: 'learned:severity', points: this.#learned.severity[index] ?? 0 },
    ]
    for (const word of wordsOf(text)) {
      const bucket = bucketOf(word)
      contributions.push({ feature: `word:${word}`, points: pointsOf(word) })
      const points = pointsFor(this.#learned, bucket, index) * this.#weightOf(bucket)
      contributions.push({ feature: `learned:${word}`, points })
    }
    const known = templateNo < this.#count.length
    const seen = known ? (this.#count[templateNo] ?? 0) : 0
    if (seen > 0) {
      contributions.push({ feature: 'rarity', points: rarityPoints(this.#total, seen) })
      contributions.push({ feature: 'burst', points: this.#burstPoints(templateNo) })
    }
    const score = contributions.reduce((sum, { points }) => sum + points, 0)
    const [P1, p2, p3, P4] = chances(score)
    this.#decide(score, index)
    return {
      priority: PRIORITIES[this.priority] ?? 'P4',
      confidence: this.confidence,
      score,
      chances: { P1, P2: p2, P3: p3, P4 },
      contributions: contributions
        .filter(({ points }) => Math.abs(points) >= 0.005)
        .sort((a, b) => Math.abs(b.points) - Math.abs(a.points)),
      modelVersion: this.modelVersion,
    }
  }

  toJSON(): PriorityState {
    return { format: 1, learned: this.#version, corrections: this.#corrections }
  }

  /** Restores a stored model; called after the templates are registered. */
  restore(state: PriorityState): void {
    this.#corrections = state.corrections.slice(-MAX_CORRECTIONS)
    this.#version = state.learned
    if (this.#corrections.length === 0) this.#learned = nothingLearned()
    else this.#refit()
    this.#stamp.fill(-1)
  }

  #decide(score: number, severityIndex: number): void {
    const step = Math.trunc((score - LOWEST_SCORE) * STEPS_PER_POINT)
    const at = step < 0 ? 0 : step >= STEPS ? STEPS - 1 : step
    const row = severityIndex * STEPS + at
    this.priority = this.#table.priority[row] ?? 3
    this.confidence = this.#table.confidence[row] ?? 0
  }

  #scoreWords(templateNo: number): void {
    const base = this.#base[templateNo] ?? 0
    const words = this.#words[templateNo] ?? []
    for (let severity = 0; severity < SEVERITIES.length; severity++) {
      let points = base
      for (const bucket of words) {
        points += pointsFor(this.#learned, bucket, severity) * this.#weightOf(bucket)
      }
      this.#wordPoints[templateNo * LEVELS + severity] = points
    }
    this.#stamp[templateNo] = this.#version
  }

  #burst(templateNo: number, epochSecond: number, n: number): number {
    const window = Math.trunc(epochSecond / WINDOW_SECONDS)
    const last = this.#window[templateNo] ?? 0
    if (window > last) {
      const usual = this.#usual[templateNo] ?? 0
      const count = this.#inWindow[templateNo] ?? 0
      // The usual rate decays to 0 within an hour without messages.
      const quiet = Math.min(window - last - 1, 360)
      const next = last === 0 ? 0 : usual + USUAL_SHARE * (count - usual)
      this.#usual[templateNo] = quiet > 0 ? next * (1 - quiet / 360) : next
      this.#window[templateNo] = window
      this.#inWindow[templateNo] = n
    } else {
      this.#inWindow[templateNo] = (this.#inWindow[templateNo] ?? 0) + n
    }
    return this.#burstPoints(templateNo)
  }

  #burstPoints(templateNo: number): number {
    const count = this.#inWindow[templateNo] ?? 0
    const usual = this.#usual[templateNo] ?? 0
    if (count < BURST_FROM || usual <= 0) return 0
    const bits = bitsOf(count) - bitsOf(usual) - 1
    return bits <= 0 ? 0 : POINTS_PER_BURST_BIT * Math.min(bits, BURST_MAX_BITS)
  }

  /** Weight of a word: 1 when one template has it, towards 0 when all have it. */
  #weightOf(bucket: number): number {
    const spread = Math.max(1, this.#spread[bucket] ?? 0)
    const all = Math.max(8, this.#templates)
    return Math.max(0.1, 1 - (0.5 * Math.log(spread)) / Math.log(all + 1))
  }

  #refit(): void {
    const corrected = new Set(this.#corrections.map(({ words }) => words.join(' ')))
    const support = this.#countSupport()
    const samples = this.#corrections.map((correction) => this.#toSample(correction, 1, support))
    const weight = Math.min(
      ANCHOR_WEIGHT,
      (ANCHOR_SHARE * this.#corrections.length) / Math.max(1, this.#anchors.length),
    )
    for (const { key, words } of this.#anchors) {
      if (corrected.has(words.join(' '))) continue
      const severity = key % SEVERITIES.length
      const [best] = mostLikely(chances(basePoints(words) + (SEVERITY_POINTS[severity] ?? 0)))
      samples.push(this.#toSample({ words, severity, priority: best }, weight, support))
    }
    this.#learned = fit(samples)
    // Points of words that few corrections support do not apply to other templates either.
    for (const [bucket, count] of support) {
      scaleWord(this.#learned, bucket, supportShare(count))
    }
  }

  /** Number of corrections that have a word of each bucket. */
  #countSupport(): Map<number, number> {
    const support = new Map<number, number>()
    for (const { words } of this.#corrections) {
      for (const bucket of new Set(words.map(bucketOf))) {
        support.set(bucket, (support.get(bucket) ?? 0) + 1)
      }
    }
    return support
  }

  #toSample(
    { words, severity, priority }: Correction,
    weight: number,
    support: ReadonlyMap<number, number>,
  ): Sample {
    const buckets = Uint16Array.from(words, bucketOf)
    const weights = Float32Array.from(
      buckets,
      (bucket) => this.#weightOf(bucket) * supportShare(support.get(bucket) ?? 0),
    )
    return { words: buckets, weights, severity, base: basePoints(words), priority, weight }
  }

  /** Keeps the templates with the lowest keys, which are an even sample in any order of templates. */
  #keepAnchor(words: readonly string[]): void {
    const key = anchorKey(words)
    const last = this.#anchors.at(-1)?.key ?? 0
    if (this.#anchors.length >= MAX_ANCHORS && key >= last) return
    const found = this.#anchors.findIndex((anchor) => anchor.key >= key)
    const at = found < 0 ? this.#anchors.length : found
    if (this.#anchors[at]?.key === key) return
    this.#anchors.splice(at, 0, { key, words })
    if (this.#anchors.length > MAX_ANCHORS) this.#anchors.pop()
  }

  /** Moves the counts of messages to the new numbers. The templates are registered again. */
  #renumber(oldNos: Int32Array): void {
    const moved = <T extends Float64Array | Float32Array | Int32Array>(from: T): T => {
      const to = from.slice().fill(0) as T // the same kind of array
      oldNos.forEach((old, no) => (to[no] = old === 0 ? 0 : (from[old] ?? 0)))
      return to
    }
    this.#count = moved(this.#count)
    this.#window = moved(this.#window)
    this.#inWindow = moved(this.#inWindow)
    this.#usual = moved(this.#usual)
    this.#stamp.fill(-1)
    this.#words = []
    this.#spread.fill(0)
    this.#templates = 0
    this.#anchors.length = 0
  }

  #reserve(templateNo: number): void {
    if (templateNo < this.#count.length) return
    const size = Math.min(this.#maxTemplates + 1, Math.max(templateNo + 1, this.#count.length * 2))
    this.#count = grown(this.#count, new Float64Array(size))
    this.#base = grown(this.#base, new Float32Array(size))
    this.#wordPoints = grown(this.#wordPoints, new Float32Array(size * LEVELS))
    this.#stamp = grown(this.#stamp, new Int32Array(size).fill(-1))
    this.#window = grown(this.#window, new Int32Array(size))
    this.#inWindow = grown(this.#inWindow, new Float64Array(size))
    this.#usual = grown(this.#usual, new Float32Array(size))
  }
}

function grown<T extends Float64Array | Float32Array | Int32Array>(from: T, to: T): T {
  to.set(from)
  return to
}

interface Anchor {
  readonly key: number
  readonly words: readonly string[]
}

/** A 32-bit hash of the words. */
function anchorKey(words: readonly string[]): number {
  let h = 0x811c9dc5
  for (const word of words)
    for (let i = 0; i <= word.length; i++)
      h = Math.imul(h ^ (i < word.length ? word.charCodeAt(i) : 32), 0x01000193)
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  return (h ^ (h >>> 13)) >>> 0
}

const basePoints = (words: readonly string[]): number => {
  const sum = words.reduce((points, word) => points + pointsOf(word), 0)
  return Math.max(-1.5, Math.min(2.2, sum))
}

/** The share of a word's points that applies. A word of a single corrected template may be a coincidence. */
const supportShare = (corrections: number): number =>
  Math.min(1, (corrections * corrections) / (FULL_SUPPORT * FULL_SUPPORT))

/** Number of bits of a count, the cheap logarithm. */
const bitsOf = (count: number): number => 32 - Math.clz32(Math.min(count, 0xffffffff))

function rarityPoints(total: number, seen: number): number {
  const bits = bitsOf(total) - bitsOf(seen) - RARITY_FROM_BITS
  return bits <= 0 ? 0 : POINTS_PER_RARITY_BIT * Math.min(bits, RARITY_MAX_BITS)
}

function mostLikely(all: readonly number[]): [priority: number, chance: number] {
  let best = 0
  for (const [i, chance] of all.entries()) if (chance > (all[best] ?? 0)) best = i
  return [best, all[best] ?? 0]
}

/** Priority and confidence by severity and score step, the bounds by severity applied. */
function priorityTable(): { readonly priority: Uint8Array; readonly confidence: Float32Array } {
  const priority = new Uint8Array(STEPS * LEVELS)
  const confidence = new Float32Array(STEPS * LEVELS)
  for (let step = 0; step < STEPS; step++) {
    const all = chances(LOWEST_SCORE + (step + 0.5) / STEPS_PER_POINT)
    const [p1, p2, p3, p4] = all
    const [best, chance] = mostLikely(all)
    for (let severity = 0; severity < LEVELS; severity++) {
      const row = severity * STEPS + step
      priority[row] = best
      confidence[row] = chance
      if (severity === CRITICAL && best > P2) {
        priority[row] = P2
        confidence[row] = p2 + p3 + p4
      } else if (severity === DEBUG && best < P3) {
        priority[row] = P3
        confidence[row] = p1 + p2 + p3
      }
    }
  }
  return { priority, confidence: confidence.map(toStep) }
}

/**
 * Rounds a confidence down to steps, which take a third less storage. Rounding down keeps it below
 * bounds that it does not reach.
 */
const toStep = (confidence: number): number =>
  Math.floor(confidence * CONFIDENCE_STEPS) / CONFIDENCE_STEPS
