import type { TemplateRow } from '../wal/record.js'

export interface Template extends TemplateRow {
  /** The miner's number of the template, 0 when it is beyond the miner's limits. */
  readonly no: number
}

export interface MinedTemplate extends Template {
  /** Whether the stored row is outdated. */
  readonly isNews: boolean
}

/**
 * All templates with their numbers and ids, in the main thread. The sequencer reads ids, the API
 * texts and redirects. `learn` adds templates that the miner found, that are stored, and that other
 * instances found. `onChange` notifies listeners.
 */
export class TemplateRegistry {
  readonly #byNo: (Template | undefined)[] = []
  readonly #byId = new Map<string, Template>()
  /** The numbers of templates whose rows are not stored, or may not be. */
  #unsaved = new Set<number>()
  /** The numbers of templates whose rows were deleted and that no message has had since. */
  #forgotten = new Set<number>()
  /** The redirects, computed on demand; null after a merge. */
  #redirects: readonly { readonly from: string; readonly into: string }[] | null = null
  #idLo = new Uint32Array(1024)
  #idHi = new Uint32Array(1024)
  readonly #listeners: ((changes: readonly Template[]) => void)[] = []
  readonly #renumberings: ((oldNos: Int32Array) => void)[] = []

  get size(): number {
    return this.#byId.size
  }

  /** Adds or replaces templates and notifies the listeners. */
  learn(changes: readonly Template[]): void {
    for (const change of changes) this.#apply(change)
    for (const listener of this.#listeners) listener(changes)
  }

  /** Calls the listener after each change; listeners are called in the order of their registration. */
  onChange(listener: (changes: readonly Template[]) => void): void {
    this.#listeners.push(listener)
  }

  /**
   * Calls the listener when all templates are renumbered, before `onChange` reports them under
   * their new numbers. `oldNos` has the old number of each new one, 0 for none.
   */
  onRenumber(listener: (oldNos: Int32Array) => void): void {
    this.#renumberings.push(listener)
  }

  #apply({ no, id, source, text, redirectId, born }: Template): void {
    const known = this.#byId.get(id)
    if (redirectId !== (known?.redirectId ?? '')) this.#redirects = null
    const template = { no: no === 0 ? (known?.no ?? 0) : no, id, source, text, redirectId, born }
    this.#byId.set(id, template)
    if (template.no !== 0) this.#number(template)
  }

  idLo(no: number): number {
    return this.#idLo[no] ?? 0
  }

  idHi(no: number): number {
    return this.#idHi[no] ?? 0
  }

  get(no: number): Template | undefined {
    return this.#byNo[no]
  }

  /** The template of this id, even if it was merged into another one. */
  find(id: string): Template | undefined {
    return this.#byId.get(id)
  }

  /** The template of this id, or the one that it was merged into. */
  byId(id: string): Template | undefined {
    const template = this.#byId.get(id)
    return template === undefined || template.redirectId === '' ? template : this.#root(template)
  }

  /** The id itself and every id that was merged into it. */
  aliasesOf(id: string): readonly string[] {
    const root = this.byId(id)
    if (root === undefined) return [id]
    return this.all()
      .filter((template) => this.byId(template.id) === root)
      .map((template) => template.id)
  }

  /** The ids of all merged templates with the ids of their targets. */
  redirects(): readonly { readonly from: string; readonly into: string }[] {
    if (this.#redirects !== null) return this.#redirects
    this.#redirects = this.all().flatMap(({ id: from }) => {
      const into = this.byId(from)?.id ?? from
      return into === from ? [] : [{ from, into }]
    })
    return this.#redirects
  }

  all(): readonly Template[] {
    return [...this.#byId.values()]
  }

  /** The templates that the miner knows, in the order of their numbers. */
  numbered(): readonly Template[] {
    return this.#byNo.filter((template) => template !== undefined)
  }

  /** Called when stored rows may be lost: each template is stored again with its next message. */
  markUnsaved(): void {
    for (const { no } of this.numbered()) this.#unsaved.add(no)
  }

  /**
   * Called when the stored rows of these templates are deleted. A template with a number stays
   * until `renumber`, because its number is in use. If it gets a message before, it is stored again
   * and stays.
   */
  forget(isForgotten: (template: Template) => boolean): void {
    for (const template of this.all()) {
      if (!isForgotten(template)) continue
      if (template.no === 0) this.#drop(template)
      else {
        this.#unsaved.add(template.no)
        this.#forgotten.add(template.no)
      }
    }
  }

  /** Called when another instance has stored the rows of these templates again. */
  remember(ids: readonly string[]): void {
    for (const id of ids) this.#forgotten.delete(this.#byId.get(id)?.no ?? 0)
  }

  /** The number of templates that `renumber` would drop. */
  get forgotten(): number {
    return this.#forgotten.size
  }

  isForgotten({ no }: Template): boolean {
    return this.#forgotten.has(no)
  }

  /** The templates that `renumber` keeps, in the order of their numbers. */
  kept(): readonly Template[] {
    const beyond = this.all().filter(({ no }) => no === 0)
    return [...this.numbered().filter((template) => !this.isForgotten(template)), ...beyond]
  }

  /**
   * Replaces all numbers. Called when no block holds one.
   *
   * @param kept the result of `kept`
   * @param nos the new number of each, 0 beyond the miner's limits
   */
  renumber(kept: readonly Template[], nos: Int32Array): void {
    const oldNos = new Int32Array(nos.reduce((most, no) => Math.max(most, no), 0) + 1)
    nos.forEach((no, i) => {
      if (no !== 0) oldNos[no] = kept[i]?.no ?? 0
    })
    const ids = new Set(kept.map(({ id }) => id))
    for (const template of this.numbered()) if (!ids.has(template.id)) this.#drop(template)
    this.#byNo.length = 0
    // Rows may have been deleted while the new numbers were made.
    this.#unsaved = renumbered(this.#unsaved, oldNos)
    this.#forgotten = renumbered(this.#forgotten, oldNos)
    for (const listener of this.#renumberings) listener(oldNos)
    for (const { id } of kept) this.#byId.delete(id)
    this.learn(kept.map((template, i) => ({ ...template, no: nos[i] ?? 0 })))
  }

  #drop({ id }: Template): void {
    this.#byId.delete(id)
    this.#redirects = null
  }

  /** Returns the templates among `nos` that must be stored again, each only once. */
  takeUnsaved(nos: Int32Array): readonly Template[] {
    if (this.#unsaved.size === 0) return []
    const found: Template[] = []
    for (const no of nos) {
      const template = this.#unsaved.delete(no) ? this.#byNo[no] : undefined
      this.#forgotten.delete(no)
      if (template !== undefined) found.push(template)
    }
    return found
  }

  /** Follows redirects. Two instances that merge at the same time may store a cycle; then its oldest template is the target. */
  #root(from: Template): Template {
    const path: Template[] = []
    let at = from
    while (at.redirectId !== '' && !path.includes(at)) {
      path.push(at)
      const next = this.#byId.get(at.redirectId)
      if (next === undefined) return at
      at = next
    }
    if (at.redirectId === '') return at
    const cycle = path.slice(path.indexOf(at))
    return cycle.reduce((oldest, each) => (isOlder(each, oldest) ? each : oldest))
  }

  #number(template: Template): void {
    const { no, id } = template
    this.#byNo[no] = template
    if (no >= this.#idLo.length) this.#grow(no)
    this.#idHi[no] = Number.parseInt(id.slice(0, 8), 16)
    this.#idLo[no] = Number.parseInt(id.slice(8), 16)
  }

  #grow(no: number): void {
    const size = Math.max(no + 1, this.#idLo.length * 2)
    const [lo, hi] = [this.#idLo, this.#idHi]
    this.#idLo = new Uint32Array(size)
    this.#idHi = new Uint32Array(size)
    this.#idLo.set(lo)
    this.#idHi.set(hi)
  }
}

function renumbered(numbers: ReadonlySet<number>, oldNos: Int32Array): Set<number> {
  const found = new Set<number>()
  oldNos.forEach((old, no) => {
    if (old !== 0 && numbers.has(old)) found.add(no)
  })
  return found
}

const isOlder = (a: Template, b: Template): boolean =>
  a.born < b.born || (a.born === b.born && a.id < b.id)

/** Omits the properties that are local to this process. */
export const toTemplateRow = ({ source, id, redirectId, text, born }: Template): TemplateRow => ({
  source,
  id,
  redirectId,
  text,
  born,
})
