import { writeFileSync } from 'node:fs'
import { Random } from '../../bench/data/random.js'
import { readCorpus, writeCorpus } from './corpus.js'
import { Coverage } from './coverage.js'
import { createMutator } from './mutate.js'
import { KEEPS, SEED, TIMES, TRACE } from './settings.js'

/** Something that takes bytes from outside. */
export interface Target {
  readonly name: string
  /** a few well-formed inputs, and what is known to be hard */
  readonly seeds: readonly (string | Uint8Array)[]
  readonly tokens?: readonly string[]
  /** files whose blocks count as reached, by path */
  readonly part: RegExp
  /** inputs by default; the seeds and the corpus come on top */
  readonly runs: number
  /** @throws what breaks a property */
  readonly check: (input: Buffer) => void | Promise<void>
}

export interface Outcome {
  readonly tried: number
  readonly inputs: number
  readonly functions: number
  /** characters of them that no input reached */
  readonly missing: number
  /** the input that broke a property, null when none did */
  readonly failure: { readonly input: string; readonly error: unknown } | null
}

/** Coverage is asked for after so many inputs; those of a group that brought something new are tried apart. */
const GROUP = 40
/** longer ones are not kept beyond a run */
const KEPT_BYTES = 2_000
/** an input that fails is cut down by so many tries */
const SHRINKING = 300

/**
 * Tries the seeds and the kept inputs of a target, then changes of them. What reaches blocks of the program
 * that nothing reached before is changed further, and kept when asked for.
 */
export async function fuzz(target: Target): Promise<Outcome> {
  const course = new Course(target)
  try {
    return await course.run()
  } finally {
    course.end()
  }
}

class Course {
  readonly #target: Target
  readonly #random: Random
  readonly #coverage: Coverage
  readonly #mutate: ReturnType<typeof createMutator>
  readonly #inputs: Buffer[] = []
  #tried = 0

  constructor(target: Target) {
    this.#target = target
    const salt = Buffer.from(target.name).reduce((sum, byte) => sum * 31 + byte, 7)
    this.#random = new Random((SEED ^ salt) >>> 0)
    this.#coverage = new Coverage(target.part)
    this.#mutate = createMutator(target.tokens ?? [])
  }

  end(): void {
    this.#coverage.end()
  }

  async run(): Promise<Outcome> {
    const { name, seeds, runs } = this.#target
    const seeded = seeds.map((seed) => Buffer.from(seed))
    const kept = readCorpus(name)
    for (const input of [...seeded, ...kept]) {
      const error = await this.#try(input)
      if (error !== null) return this.#failed(input, error)
      this.#inputs.push(input)
    }
    this.#coverage.note()
    for (const last = this.#tried + runs * TIMES; this.#tried < last;) {
      const failure = await this.#tryGroup()
      if (failure !== null) return failure
    }
    if (KEEPS) writeCorpus(name, await this.#fewest(seeded))
    return this.#outcome(null)
  }

  /** The shortest inputs that reach what all of them reach together. */
  async #fewest(seeded: readonly Buffer[]): Promise<Buffer[]> {
    this.#coverage.forget()
    for (const input of seeded) await this.#try(input)
    this.#coverage.note()
    const kept: Buffer[] = []
    const short = this.#inputs.filter(({ length }) => length <= KEPT_BYTES)
    for (const input of short.toSorted((a, b) => a.length - b.length)) {
      await this.#try(input)
      if (this.#coverage.note()) kept.push(input)
    }
    return kept
  }

  async #tryGroup(): Promise<Outcome | null> {
    const group: Buffer[] = []
    for (let i = 0; i < GROUP; i++) {
      const parent = this.#inputs[this.#random.below(this.#inputs.length)] ?? Buffer.alloc(0)
      const input = this.#mutate(parent, this.#inputs, this.#random)
      group.push(input)
      const error = await this.#try(input)
      if (error !== null) return this.#failed(await this.#shrink(input), error)
    }
    if (!this.#coverage.hasNews()) return null
    for (const input of group) {
      this.#coverage.skip()
      await this.#try(input)
      if (this.#coverage.note()) this.#inputs.push(input)
    }
    return null
  }

  /** @returns what was thrown, null when all is well */
  async #try(input: Buffer): Promise<Error | null> {
    this.#tried++
    if (TRACE !== null) writeFileSync(TRACE, input)
    try {
      await this.#target.check(input)
      return null
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error))
    }
  }

  /** A shorter input that fails as well. */
  async #shrink(input: Buffer): Promise<Buffer> {
    let shortest = input
    for (let i = 0; i < SHRINKING && shortest.length > 1; i++) {
      const length = Math.max(1, Math.floor((this.#random.share() * shortest.length) / 2))
      const from = this.#random.below(shortest.length - length + 1)
      const shorter = Buffer.concat([shortest.subarray(0, from), shortest.subarray(from + length)])
      if ((await this.#try(shorter)) !== null) shortest = shorter
    }
    return shortest
  }

  #failed(input: Buffer, error: Error): Outcome {
    return this.#outcome({ input: JSON.stringify(input.toString('latin1')).slice(0, 4000), error })
  }

  #outcome(failure: Outcome['failure']): Outcome {
    const { functions, missing } = this.#coverage
    return { tried: this.#tried, inputs: this.#inputs.length, functions, missing, failure }
  }
}
