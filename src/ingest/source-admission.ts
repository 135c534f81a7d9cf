import { setImmediate as nextTurn } from 'node:timers/promises'

import type { Sources } from '../records/sources.js'
import type { Registration } from '../wal/record.js'
import type { BlockResult, BodyTask } from './block.js'
import type { Submission } from './submission.js'
import { withFound, type SourceVerdict } from './verdicts.js'

/** The sources that are registered in one iteration of the event loop. */
const SOURCES_AT_ONCE = 500

interface AdmittedTask {
  readonly jobs: readonly { readonly submission: Submission }[]
  bodies: readonly BodyTask[]
}

/** Registers the new sources of tasks, and finds the sources that may not be stored. */
export class SourceAdmission {
  readonly #sources: Pick<Sources, 'admit' | 'limitOf' | 'register'>
  /** The registrations that are not in a record of the WAL yet. */
  #unsaved: Registration[] = []

  constructor(sources: Pick<Sources, 'admit' | 'limitOf' | 'register'>) {
    this.#sources = sources
  }

  /** Registers the sources of a body in batches when there are many, so that the event loop is not blocked. */
  async registerMany({ jobs }: AdmittedTask, { bodies }: BlockResult): Promise<void> {
    for (const [i, { sources }] of bodies.entries())
      for (let from = 0; from + SOURCES_AT_ONCE < sources.length; from += SOURCES_AT_ONCE) {
        this.#refusedOf(sources.slice(from, from + SOURCES_AT_ONCE), jobs[i]?.submission)
        await nextTurn()
      }
  }

  /**
   * Registers the new sources of a task, and finds those whose messages must not be stored.
   *
   * @returns false when the task must be encoded again with further verdicts
   */
  admits(task: AdmittedTask, result: BlockResult): boolean {
    // The common case: all sources of the block are registered.
    const isKnown = (name: string): boolean => this.#sources.admit(name) === 'ok'
    if (result.block?.sources.every(isKnown) === true) return true
    let isAdmitted = true
    task.bodies = task.bodies.map((body, i) => {
      const named = result.bodies[i]?.sources ?? []
      const found = this.#refusedOf(named, task.jobs[i]?.submission)
      isAdmitted &&= found.size === 0
      return isAdmitted ? body : { ...body, verdicts: withFound(body.verdicts, named, found) }
    })
    return isAdmitted
  }

  /** The registrations for the next record of the WAL. A source that was deleted meanwhile must not be registered again. */
  takeUnsaved(): readonly Registration[] {
    return this.#unsaved
      .splice(0)
      .filter(({ name }) => this.#sources.admit(name) !== 'unregistered')
  }

  /** Called when a record could not be written. */
  putBack(registrations: readonly Registration[]): void {
    this.#unsaved.unshift(...registrations)
  }

  #refusedOf(
    sources: readonly string[],
    { register = null, keyId = '' }: Partial<Submission> = {},
  ): ReadonlyMap<string, SourceVerdict> {
    const found = new Map<string, SourceVerdict>()
    for (const name of sources) {
      const verdict = this.#verdictOf(name, register, keyId)
      if (verdict !== null) found.set(name, verdict)
    }
    return found
  }

  #verdictOf(name: string, register: Submission['register'], keyId: string): SourceVerdict | null {
    const admission = this.#sources.admit(name)
    if (admission === 'ok') return null
    if (admission === 'disabled') return 'drop'
    if (register === null) return 'unknown_source'
    const limit = this.#sources.limitOf(keyId)
    if (limit !== null) return limit
    const registration = { name, ...register, keyId }
    this.#sources.register(registration)
    this.#unsaved.push(registration)
    return null
  }
}
