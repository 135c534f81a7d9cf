import type { TemplateRow } from '../wal/record.js'

/** A template as it is known to the whole process. */
export interface Template {
  /** its number with the template owner, 0 = beyond the owner's limits */
  readonly no: number
  /** 16 hex digits */
  readonly id: string
  readonly source: string
  readonly text: string
  /** id of the template it was merged into, '' = none */
  readonly redirectId: string
  /** when the first message of it came, microseconds since 1970 */
  readonly born: number
}

/** A template as the owner reports it. */
export interface FoundTemplate extends Template {
  /** whether it must be stored */
  readonly isNews: boolean
}

/** What the main thread knows of every template: ids for the rows, texts and redirects for the API. */
export class TemplateTable {
  readonly #byNo: (Template | undefined)[] = []
  readonly #byId = new Map<string, Template>()
  readonly #unsaved = new Set<number>()
  /** made when asked for, until a template is merged */
  #redirects: readonly { readonly from: string; readonly into: string }[] | null = null
  #idLo = new Uint32Array(1024)
  #idHi = new Uint32Array(1024)

  get size(): number {
    return this.#byId.size
  }

  apply(change: Template): void {
    const { no, id, source, text, redirectId, born } = change
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

  /** The template of this id, merged or not. */
  find(id: string): Template | undefined {
    return this.#byId.get(id)
  }

  /** The template that answers for `id` today. */
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

  /** Every id that was merged away, with the one that answers for it today. */
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

  /** Those that the owner knows, by their numbers. */
  numbered(): readonly Template[] {
    return this.#byNo.filter((template) => template !== undefined)
  }

  /**
   * The stored rows of these sources' templates are being deleted. The templates stay known, so that their
   * numbers stay good, and are stored again when a message of theirs comes.
   */
  markUnsaved(isDeleted: (source: string) => boolean): void {
    for (const template of this.numbered())
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

  /** Follows redirects. What two instances stored at the same moment may be a circle: its oldest answers. */
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
    const circle = path.slice(path.indexOf(at))
    return circle.reduce((oldest, each) => (isOlder(each, oldest) ? each : oldest))
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

const isOlder = (a: Template, b: Template): boolean =>
  a.born < b.born || (a.born === b.born && a.id < b.id)

/** As it is stored. */
export const toTemplateRow = ({ source, id, redirectId, text, born }: Template): TemplateRow => ({
  source,
  id,
  redirectTo: redirectId,
  text,
  born,
})
