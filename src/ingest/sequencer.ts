import type { DeadBlock } from '../writer/dead-letter-encoder.js'
import type { RowBlock } from './block.js'
import type { DedupWindow } from './dedup-window.js'
import type { EventIds } from '../coordination/event-ids.js'
import type { PriorityModel } from '../priority/model.js'
import { NO_OVERRIDE, type PriorityOverrides } from '../priority/overrides.js'
import type { RetentionPolicy } from '../retention/policy.js'
import type { TemplateRegistry } from '../templates/registry.js'

export interface SequencerDeps {
  /** Taking an event id waits for nothing: blocks of ids are reserved in ClickHouse ahead of their use. */
  readonly ids: Pick<EventIds, 'take'>
  readonly window: DedupWindow
  readonly templates: TemplateRegistry
  readonly model: Pick<PriorityModel, 'assign' | 'priority' | 'confidence'>
  readonly overrides: PriorityOverrides
  readonly retention: Pick<RetentionPolicy, 'classesOf'>
}

/** Enum values of the column `priority_source`. */
const PRIORITY_OF = { model: 0, template: 1 } as const

/** A range of rows of a block. */
interface BatchPlace {
  readonly view: DataView
  /** The window's number of each source of the block. */
  readonly owners: Uint32Array
  readonly from: number
  readonly to: number
}

/**
 * Gives each row its event id, template id and priority and writes them into the block's bytes. A row that repeats an
 * event within the dedup window takes the id and the priority of that event. There is one sequencer in the process and
 * it is synchronous, so ids are unique and blocks are sequenced one after the other.
 */
export class Sequencer {
  readonly #deps: SequencerDeps
  readonly #ownerOf = new Map<string, number>()
  #owners = 0

  constructor(deps: SequencerDeps) {
    this.#deps = deps
  }

  /** @returns the number of new events */
  sequence(block: RowBlock): number {
    const view = new DataView(block.bytes.buffer, block.bytes.byteOffset, block.bytes.length)
    const owners = Uint32Array.from(block.sources, (source) => this.#owner(source))
    const step = this.#deps.window.batchRows
    let added = 0
    for (let from = 0; from < block.rows; from += step)
      added += this.#sequenceBatch(block, {
        view,
        owners,
        from,
        to: Math.min(from + step, block.rows),
      })
    this.#classify(block, view)
    return added
  }

  /** Gives dead letters their ids. */
  number(dead: DeadBlock): void {
    const view = new DataView(dead.bytes.buffer, dead.bytes.byteOffset, dead.bytes.length)
    for (let row = 0; row < dead.rows; row++)
      setId(view, dead.idAt + row * 8, this.#deps.ids.take())
  }

  /** Sets the priority under which later repeats of an event are counted. */
  correct(id: number, priority: number): void {
    this.#deps.window.setPriority(id, priority)
  }

  /** Prevents later messages from repeating events of these sources. */
  forget(sources: readonly string[]): void {
    for (const source of sources) {
      const owner = this.#ownerOf.get(source)
      if (owner !== undefined) this.#deps.window.forget(owner)
      this.#ownerOf.delete(source)
    }
  }

  /** Empties the window after events did not become durable or everything was deleted. */
  forgetAll(): void {
    this.#deps.window.clear()
    this.#ownerOf.clear()
  }

  #sequenceBatch(block: RowBlock, { view, owners, from, to }: BatchPlace): number {
    const { window, ids, templates } = this.#deps
    const batch = window.batch()
    const rows = to - from
    batch.hashes.set(block.hashes.subarray(from * 2, to * 2))
    batch.tsMs.set(block.tsMs.subarray(from, to))
    for (let i = 0; i < rows; i++) batch.owners[i] = owners[block.sourceIndexes[from + i] ?? 0] ?? 0
    const added = window.lookUp(rows)
    for (let i = 0; i < rows; i++) {
      const row = from + i
      const no = block.templateNos[row] ?? 0
      view.setUint32(block.at.templateId + row * 8, templates.idLo(no), true)
      view.setUint32(block.at.templateId + row * 8 + 4, templates.idHi(no), true)
      if (batch.begins[i] !== 1) continue
      batch.ids[i] = ids.take()
      batch.priorities[i] = this.#score(block, row, view)
    }
    window.settle(rows)
    block.bytes.set(batch.idBytes.subarray(0, rows * 8), block.at.id + from * 8)
    block.bytes.set(batch.begins.subarray(0, rows), block.at.isNew + from)
    block.bytes.set(batch.priorities.subarray(0, rows), block.at.priority + from)
    return added
  }

  /** Writes the retention class of each row; class 0 is there already. */
  #classify({ sources, sourceIndexes, severities, rows, at }: RowBlock, view: DataView): void {
    const classes = sources.map((source) => this.#deps.retention.classesOf(source))
    if (classes.every((one) => one === null)) return
    for (let row = 0; row < rows; row++) {
      const days = classes[sourceIndexes[row] ?? 0]?.[severities[row] ?? 1] ?? 0
      if (days !== 0) view.setUint16(at.keptDays + row * 2, days, true)
    }
  }

  #score(block: RowBlock, row: number, view: DataView): number {
    const { model, overrides } = this.#deps
    const no = block.templateNos[row] ?? 0
    const second = Math.floor((block.tsMs[row] ?? 0) / 1000)
    model.assign(no, block.severities[row] ?? 1, second, block.counts[row] ?? 1)
    const override = overrides.at(no)
    const isCorrected = override !== NO_OVERRIDE
    const source = isCorrected ? PRIORITY_OF.template : PRIORITY_OF.model
    view.setUint8(block.at.prioritySource + row, source)
    view.setFloat32(block.at.confidence + row * 4, isCorrected ? 1 : model.confidence, true)
    return isCorrected ? override : model.priority
  }

  #owner(source: string): number {
    const known = this.#ownerOf.get(source)
    if (known !== undefined) return known
    const owner = ++this.#owners
    this.#ownerOf.set(source, owner)
    return owner
  }
}

function setId(view: DataView, at: number, id: number): void {
  view.setUint32(at, id % 0x1_0000_0000, true)
  view.setUint32(at + 4, Math.floor(id / 0x1_0000_0000), true)
}
