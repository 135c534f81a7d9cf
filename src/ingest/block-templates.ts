import { setImmediate as nextTurn } from 'node:timers/promises'

import type { MinedTemplate, TemplateRegistry } from '../templates/registry.js'
import { toTemplateRow } from '../templates/registry.js'
import type { TemplateRow } from '../wal/record.js'
import type { MissBlock, RowBlock } from './block.js'
import type { MissTask } from './miner-thread.js'
import type { Pool } from './pool.js'

interface BlockTemplatesDeps {
  readonly pool: Pick<Pool, 'resolve' | 'adopt' | 'restore'>
  readonly templates: TemplateRegistry
  /** Publishes the template of a signature to all threads. */
  readonly learnSignature: (lo: number, hi: number, templateNo: number) => void
}

/**
 * What is learned in one turn of the event loop takes some milliseconds, and what is mined in one task some more; a body may
 * have tens of thousands of new templates.
 */
const LEARNED_AT_ONCE = 250

/** The templates of the pipeline's blocks, by number, and the rows of them that are to be stored. */
export class BlockTemplates {
  readonly #deps: BlockTemplatesDeps
  #unsaved: TemplateRow[] = []
  /** The end of what is being learned: the miner's results in their order. It never rejects. */
  #learning: Promise<void> = Promise.resolve()

  constructor(deps: BlockTemplatesDeps) {
    this.#deps = deps
  }

  /** Has the miner find the templates of the signatures that no thread knew, some at a time: those of other bodies go between. */
  async resolve(
    { sources, templateNos }: Pick<RowBlock, 'sources' | 'templateNos'>,
    misses: MissBlock,
  ): Promise<void> {
    const { pool, templates, learnSignature } = this.#deps
    const nos = new Int32Array(misses.ends.length)
    for (let from = 0; from < nos.length; from += LEARNED_AT_ONCE) {
      const some = missTask(sources, misses, from)
      const mined = await pool.resolve(some, () => templates.numbered())
      // Before the next ones, because a miner that is replaced meanwhile is restored with what was learned.
      await this.#learn(mined.changes)
      nos.set(mined.nos, from)
      for (const [i, no] of mined.nos.entries()) {
        const at = (from + i) * 2
        learnSignature(misses.signatures[at] ?? 0, misses.signatures[at + 1] ?? 0, no)
      }
    }
    misses.rows.forEach((row, i) => {
      templateNos[row] = nos[misses.missOfRow[i] ?? 0] ?? 0
    })
  }

  /** Has the miner adopt the templates of other instances. @returns whether there are rows to store */
  async adopt(records: readonly TemplateRow[]): Promise<boolean> {
    const { pool, templates } = this.#deps
    const changes = await pool.adopt(records, () => templates.numbered())
    await this.#learn(changes)
    // The registry also has the templates beyond the miner's limits.
    const unknown = records.filter(({ id }) => (templates.find(id)?.no ?? 0) === 0)
    templates.learn(unknown.map((record) => ({ ...record, no: 0 })))
    return changes.some(({ isNews }) => isNews)
  }

  /** Drops the forgotten templates and numbers the others anew. Called when nothing holds a number. */
  async renumber(): Promise<void> {
    const { pool, templates } = this.#deps
    const kept = templates.kept()
    // When this fails, the old numbers hold, and the miner is restored with them.
    const nos = await pool.restore(kept)
    templates.renumber(kept, nos)
  }

  /** Adds the templates of a block that must be stored again. */
  use({ templateNos }: RowBlock): void {
    this.#unsaved.push(...this.#deps.templates.takeUnsaved(templateNos).map(toTemplateRow))
  }

  /** The rows for the next record of the WAL. */
  takeUnsaved(): readonly TemplateRow[] {
    return this.#unsaved.splice(0)
  }

  /** Called when a record could not be written. */
  putBack(rows: readonly TemplateRow[]): void {
    this.#unsaved.unshift(...rows)
  }

  async #learn(changes: readonly MinedTemplate[]): Promise<void> {
    const learned = this.#learnAfter(this.#learning, changes)
    this.#learning = learned.catch(() => undefined)
    await learned
  }

  async #learnAfter(earlier: Promise<void>, changes: readonly MinedTemplate[]): Promise<void> {
    await earlier
    for (let from = 0; from < changes.length; from += LEARNED_AT_ONCE) {
      if (from > 0) await nextTurn()
      const some = changes.slice(from, from + LEARNED_AT_ONCE)
      this.#deps.templates.learn(some)
      this.#unsaved.push(...some.filter(({ isNews }) => isNews).map(toTemplateRow))
    }
  }
}

function missTask(sources: readonly string[], misses: MissBlock, from: number): MissTask {
  const { bytes, ends, sourceIndexes, readyMade } = misses
  const to = Math.min(from + LEARNED_AT_ONCE, ends.length)
  const start = ends[from - 1] ?? 0
  return {
    bytes: bytes.slice(start, ends[to - 1]),
    ends: ends.slice(from, to).map((end) => end - start),
    sources: Array.from(sourceIndexes.subarray(from, to), (index) => sources[index] ?? ''),
    readyMade: readyMade.slice(from, to),
  }
}
