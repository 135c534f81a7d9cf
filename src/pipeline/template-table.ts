/** A template as the owner thread reports it; `no` is its number in this process. */
export interface Template {
  readonly no: number
  /** 16 hex digits */
  readonly id: string
  readonly source: string
  readonly text: string
  /** number of the template it was merged into, 0 = none */
  readonly redirectTo: number
  /** its id, '' = none */
  readonly redirectId: string
}

/** What the main thread knows of every template: ids for the rows, texts and redirects for the API. */
export class TemplateTable {
  readonly #byNo: (Template | undefined)[] = []
  readonly #noOfId = new Map<string, number>()
  readonly #unsaved = new Set<number>()
  /** made when asked for, until a template is merged */
  #redirects: readonly { readonly from: string; readonly into: string }[] | null = null
  #idLo = new Uint32Array(1024)
  #idHi = new Uint32Array(1024)

  get size(): number {
    return this.#noOfId.size
  }

  apply(change: Template): void {
    const { no } = change
    if (change.redirectTo !== (this.#byNo[no]?.redirectTo ?? 0)) this.#redirects = null
    this.#byNo[no] = change
    this.#noOfId.set(change.id, no)
    if (no >= this.#idLo.length) this.#grow(no)
    this.#idHi[no] = Number.parseInt(change.id.slice(0, 8), 16)
    this.#idLo[no] = Number.parseInt(change.id.slice(8), 16)
  }

  idLo(no: number): number {
    return this.#idLo[no] ?? 0
  }

  idHi(no: number): number {
    return this.#idHi[no] ?? 0
  }

  /** Follows redirects to the template that answers for this one. */
  canonical(no: number): number {
    let current = no
    for (let hops = 0; hops < 64; hops++) {
      const next = this.#byNo[current]?.redirectTo ?? 0
      if (next === 0) return current
      current = next
    }
    return current
  }

  get(no: number): Template | undefined {
    return this.#byNo[no]
  }

  /** @returns 0 when the id is unknown */
  numberOf(id: string): number {
    return this.#noOfId.get(id) ?? 0
  }

  /** The template that answers for `id` today. */
  byId(id: string): Template | undefined {
    const no = this.#noOfId.get(id)
    return no === undefined ? undefined : this.#byNo[this.canonical(no)]
  }

  /** The id itself and every id that was merged into it. */
  aliasesOf(id: string): readonly string[] {
    const target = this.#noOfId.get(id)
    if (target === undefined) return [id]
    const canonical = this.canonical(target)
    const aliases = this.all().filter((template) => this.canonical(template.no) === canonical)
    return aliases.map((template) => template.id)
  }

  /** Every id that was merged away, with the one that answers for it today. */
  redirects(): readonly { readonly from: string; readonly into: string }[] {
    if (this.#redirects !== null) return this.#redirects
    this.#redirects = this.all()
      .filter((template) => template.redirectTo !== 0)
      .map(({ no, id }) => ({ from: id, into: this.#byNo[this.canonical(no)]?.id ?? id }))
    return this.#redirects
  }

  all(): readonly Template[] {
    return this.#byNo.filter((template) => template !== undefined)
  }

  /**
   * The stored rows of these sources' templates are being deleted. The templates stay known, so that their
   * numbers stay good, and are stored again when a message of theirs comes.
   */
  markUnsaved(isDeleted: (source: string) => boolean): void {
    for (const template of this.all())
      if (isDeleted(template.source)) this.#unsaved.add(template.no)
  }

  /** Templates among `nos` that must be stored again; each is told once. */
  takeUnsaved(nos: Int32Array): readonly Template[] {
    if (this.#unsaved.size === 0) return []
    const found: Template[] = []
    for (const no of nos) {
      const template = this.#unsaved.delete(no) ? this.#byNo[no] : undefined
      if (template !== undefined) found.push(template)
    }
    return found
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
