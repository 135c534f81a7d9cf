import { setImmediate as nextTurn } from 'node:timers/promises'

import type { MinedTemplate, TemplateRegistry } from '../templates/registry.js'
import { toTemplateRow } from '../templates/registry.js'
import type { TemplateRow } from '../wal/record.js'
import type { MissBlock, RowBlock } from './block.js'
import type { Pool } from './pool.js'

interface BlockTemplatesDeps {
  readonly pool: Pick<Pool, 'resolve' | 'adopt' | 'restore'>
  readonly templates: TemplateRegistry
  /** Publishes the template of a signature to all threads. */
  readonly learnSignature: (lo: number, hi: number, templateNo: number) => void
}

/** What is learned in one turn of the event loop takes some milliseconds; a body may have tens of thousands of new templates. */
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

  /** Has the miner find the templates of the signatures that no thread knew. */
  async resolve({ sources, templateNos }: RowBlock, misses: MissBlock): Promise<void> {
    const { pool, templates, learnSignature } = this.#deps
    const mined = await pool.resolve({ misses, sources }, () => templates.numbered())
    await this.#learn(mined.changes)
    for (const [i, no] of mined.nos.entries()) {
      if (i > 0 && i % LEARNED_AT_ONCE === 0) await nextTurn()
      learnSignature(misses.signatures[i * 2] ?? 0, misses.signatures[i * 2 + 1] ?? 0, no)
    }
    misses.rows.forEach((row, i) => {
      templateNos[row] = mined.nos[misses.missOfRow[i] ?? 0] ?? 0
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
