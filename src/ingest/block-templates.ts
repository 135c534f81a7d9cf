import { setImmediate as nextTurn } from 'node:timers/promises'

import type { MinedTemplate, TemplateRegistry } from '../templates/registry.js'
import type { SignatureCache } from '../templates/signature-cache.js'
import { toTemplateRow } from '../templates/registry.js'
import type { TemplateRow } from '../wal/record.js'
import type { MissBlock, RowBlock } from './block.js'
import type { MissTask } from './miner-thread.js'
import type { Pool } from './pool.js'

interface BlockTemplatesDeps {
  readonly pool: Pick<Pool, 'resolve' | 'adopt' | 'restore'>
  readonly templates: TemplateRegistry
  /** Known to all threads. */
  readonly signatures: Pick<SignatureCache, 'put'>
}

/**
 * The templates that are learned at once take some milliseconds of the event loop, and those mined
 * in one task a few more; a body may have tens of thousands of new templates.
 */
const LEARNED_AT_ONCE = 250

/** The templates of the pipeline's blocks, by number, and their rows that are to be stored. */
export class BlockTemplates {
  readonly #deps: BlockTemplatesDeps
  #unsaved: TemplateRow[] = []
  /** The end of the current learning, in which results of the miner are applied in their order. It never rejects. */
  #learning: Promise<void> = Promise.resolve()

  constructor(deps: BlockTemplatesDeps) {
    this.#deps = deps
  }

  /** Sends unknown signatures to the miner, some at a time, so that those of other bodies get their turn. */
  async resolve(
    { sources, templateNos }: Pick<RowBlock, 'sources' | 'templateNos'>,
    misses: MissBlock,
  ): Promise<void> {
    const { pool, templates, signatures } = this.#deps
    const nos = new Int32Array(misses.ends.length)
    for (let from = 0; from < nos.length; from += LEARNED_AT_ONCE) {
      const some = missTask(sources, misses, from)
      const mined = await pool.resolve(some, () => templates.numbered())
      // Learned before the next ones are mined, because a miner that is replaced meanwhile is restored from what was learned.
      await this.#learn(mined.changes)
      nos.set(mined.nos, from)
      for (const [i, no] of mined.nos.entries()) {
        const at = (from + i) * 2
        signatures.put(misses.signatures[at] ?? 0, misses.signatures[at + 1] ?? 0, no)
      }
    }
    misses.rows.forEach((row, i) => {
      templateNos[row] = nos[misses.missOfRow[i] ?? 0] ?? 0
    })
  }

  /** Passes templates of other instances to the miner. @returns whether there are rows to store */
  async adopt(records: readonly TemplateRow[]): Promise<boolean> {
    const { pool, templates } = this.#deps
    const changes = await pool.adopt(records, () => templates.numbered())
    await this.#learn(changes)
    // The registry also has the templates beyond the miner's limits.
    const unknown = records.filter(({ id }) => (templates.find(id)?.no ?? 0) === 0)
    templates.learn(unknown.map((record) => ({ ...record, no: 0 })))
    return changes.some(({ isNews }) => isNews)
  }

  /** Drops the forgotten templates and renumbers the others. Called when no block holds a number. */
  async renumber(): Promise<void> {
    const { pool, templates } = this.#deps
    const kept = templates.kept()
    // If this fails, the old numbers stay valid, and the miner is restored with them.
    const nos = await pool.restore(kept)
    templates.renumber(kept, nos)
  }

  /** Marks the templates of a block as used, and queues those that must be stored again. */
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
