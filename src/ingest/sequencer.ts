import type { DeadBlock, RowBlock } from './block.js'
import type { DedupWindow } from './dedup-window.js'
import type { Template, TemplateTable } from './template-table.js'

/** Gives out event ids; `take` is synchronous because blocks of ids are reserved ahead. */
export interface IdSource {
  take(): number
}

/** The automatic priority; results are left in the fields so that a row costs no object. */
export interface PriorityScorer {
  assign(templateNo: number, severity: number, epochSecond: number, n: number): void
  readonly priority: number
  readonly confidence: number
}

export interface SequencerParts {
  readonly ids: IdSource
  readonly window: DedupWindow
  readonly templates: TemplateTable
  readonly scorer: PriorityScorer
}

/** A person's priority for a template. */
interface Corrected {
  /** index into PRIORITIES */
  readonly priority: number
  readonly atMs: number
}

const AUTO = 0
const TEMPLATE = 1
const NO_OVERRIDE = 255

/** Rows `from` to `to` of a block. */
interface BatchPlace {
  readonly view: DataView
  /** by the block's number of a source */
  readonly owners: Uint32Array
  readonly from: number
  readonly to: number
}

/**
 * The single owner of everything that must be unique. Gives each row its event id, template id and priority
 * and writes them into the block's bytes. Synchronous: blocks are sequenced one after the other.
 */
export class Sequencer {
  readonly #parts: SequencerParts
  #overrides = new Uint8Array(1024).fill(NO_OVERRIDE)
  /** by the template that was corrected, which may have been merged since */
  readonly #correctedOf = new Map<string, Corrected>()
  /** by the template that answers for it */
  #correctedRoots = new Map<string, Corrected>()
  readonly #ownerOf = new Map<string, number>()
  #owners = 0

  constructor(parts: SequencerParts) {
    this.#parts = parts
  }

  /** @returns how many rows began a new event */
  sequence(block: RowBlock): number {
    const view = new DataView(block.bytes.buffer, block.bytes.byteOffset, block.bytes.length)
    const owners = Uint32Array.from(block.sources, (source) => this.#owner(source))
    const step = this.#parts.window.batchRows
    let added = 0
    for (let from = 0; from < block.rows; from += step)
      added += this.#sequenceBatch(block, {
        view,
        owners,
        from,
        to: Math.min(from + step, block.rows),
      })
    return added
  }

  /** Gives dead letters their ids. */
  number(dead: DeadBlock): void {
    const view = new DataView(dead.bytes.buffer, dead.bytes.byteOffset, dead.bytes.length)
    for (let row = 0; row < dead.rows; row++)
      setId(view, dead.idAt + row * 8, this.#parts.ids.take())
  }

  /** Later events of these templates take the priority that a person gave them; null = none. */
  override(changes: Iterable<readonly [templateId: string, corrected: Corrected | null]>): void {
    for (const [templateId, corrected] of changes) {
      if (corrected === null) this.#correctedOf.delete(templateId)
      else this.#correctedOf.set(templateId, corrected)
    }
    this.#lookAll()
  }

  /** What a person said of a template, or last of those that it is one with. */
  overrideOf(templateId: string): number | null {
    const root = this.#parts.templates.byId(templateId)?.id ?? templateId
    return this.#correctedRoots.get(root)?.priority ?? null
  }

  /** Templates are new, or were merged. */
  noteTemplates(changes: readonly Template[]): void {
    if (this.#correctedOf.size === 0) return
    if (changes.some(({ redirectId }) => redirectId !== '')) this.#lookAll()
    else for (const { no, id } of changes) this.#look(no, id)
  }

  #lookAll(): void {
    const { templates } = this.#parts
    this.#correctedRoots = new Map()
    for (const [templateId, corrected] of this.#correctedOf) {
      const root = templates.byId(templateId)?.id ?? templateId
      const other = this.#correctedRoots.get(root)
      if (other === undefined || other.atMs <= corrected.atMs)
        this.#correctedRoots.set(root, corrected)
    }
    this.#overrides.fill(NO_OVERRIDE)
    if (this.#correctedRoots.size === 0) return
    for (const { no, id } of templates.numbered()) this.#look(no, templates.byId(id)?.id ?? id)
  }

  #look(no: number, root: string): void {
    if (no >= this.#overrides.length) this.#grow(no)
    this.#overrides[no] = this.#correctedRoots.get(root)?.priority ?? NO_OVERRIDE
  }

  /** Repeats of event `id` count under this priority from here on. */
  correct(id: number, priority: number): void {
    this.#parts.window.setPriority(id, priority)
  }

  /** No later message joins an event of these sources. */
  forget(sources: readonly string[]): void {
    for (const source of sources) {
      const owner = this.#ownerOf.get(source)
      if (owner !== undefined) this.#parts.window.forget(owner)
      this.#ownerOf.delete(source)
    }
  }

  /** Begins with an empty window: what was given out did not become durable, or everything was deleted. */
  forgetAll(): void {
    this.#parts.window.clear()
    this.#ownerOf.clear()
  }

  clearOverrides(): void {
    this.#correctedOf.clear()
    this.#lookAll()
  }

  #sequenceBatch(block: RowBlock, { view, owners, from, to }: BatchPlace): number {
    const { window, ids, templates } = this.#parts
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

  #score(block: RowBlock, row: number, view: DataView): number {
    const { scorer } = this.#parts
    const no = block.templateNos[row] ?? 0
    const second = Math.floor((block.tsMs[row] ?? 0) / 1000)
    scorer.assign(no, block.severities[row] ?? 1, second, block.counts[row] ?? 1)
    const override = this.#overrides[no] ?? NO_OVERRIDE
    view.setUint8(block.at.prioritySource + row, override === NO_OVERRIDE ? AUTO : TEMPLATE)
    const confidence = override === NO_OVERRIDE ? scorer.confidence : 1
    view.setFloat32(block.at.confidence + row * 4, confidence, true)
    return override === NO_OVERRIDE ? scorer.priority : override
  }

  #owner(source: string): number {
    const known = this.#ownerOf.get(source)
    if (known !== undefined) return known
    const owner = ++this.#owners
    this.#ownerOf.set(source, owner)
    return owner
  }

  #grow(no: number): void {
    const grown = new Uint8Array(Math.max(no + 1, this.#overrides.length * 2)).fill(NO_OVERRIDE)
    grown.set(this.#overrides)
    this.#overrides = grown
  }
}

function setId(view: DataView, at: number, id: number): void {
  view.setUint32(at, id % 0x1_0000_0000, true)
  view.setUint32(at + 4, Math.floor(id / 0x1_0000_0000), true)
}
