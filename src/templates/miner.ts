import { hashId } from '../lib/hash.js'
import type { TemplateRow } from '../wal/record.js'
import { MaskedMessage } from './masked-message.js'
import { SourceTemplates, type TemplateNumbers } from './source-templates.js'
import type { MinedTemplate } from './registry.js'
import { SHARE_LIMITS, TemplateShares, type ShareLimits } from './shares.js'
import { Template } from './template.js'
import { VALUE } from './template-text.js'

export interface MinerLimits extends ShareLimits {
  /** Evidence per source; the oldest is dropped first. */
  readonly evidencePerSource: number
}

const DEFAULT_LIMITS: MinerLimits = { ...SHARE_LIMITS, evidencePerSource: 8000 }

/**
 * How often instances may overwrite each other's row of a template because their texts differ. After a
 * fault they could go on for ever.
 */
const MAX_DISPUTES = 30

/**
 * Finds the template of every message, separately for each source (source-templates.ts has the algorithm).
 *
 * An id is a hash of the source and of the text at birth: two instances that mine the same first
 * message of a template give it the same id, and `restore` gives it back after a restart. When
 * templates are merged, the oldest stays and the others redirect to it. Instances store their
 * templates and `adopt` those of the others. In whatever order that happens, all end with the same
 * templates, because a merge depends on its two templates alone and texts only get more general.
 * Everything is bounded: a source that has its share of the templates (shares.ts) gets its
 * catch-all template `<*>` for further messages. When there is no room for a source's first
 * template, its messages get the catch-all template of the source ''.
 */
export class TemplateMiner {
  readonly #limits: MinerLimits
  readonly #shares: TemplateShares
  readonly #sources = new Map<string, SourceTemplates>()
  #owners: ReadonlyMap<string, string> = new Map()
  /** Template `no` is at no - 1. */
  readonly #templates: Template[] = []
  readonly #byId = new Map<string, number>()
  readonly #changed = new Set<number>()
  /** Changed templates whose stored rows are up to date. */
  readonly #stored = new Set<number>()
  readonly #nowMs: () => number
  #lastBorn = 0
  readonly #message = new MaskedMessage()
  readonly #encoder = new TextEncoder()
  readonly #numbers: TemplateNumbers = {
    create: (source, message) => this.#create(source, message),
    find: (source, message) => this.#byId.get(templateId(source, message.text())) ?? 0,
    template: (no) => this.#template(no),
    root: (no) => this.#template(this.rootOf(no)),
    changed: (no) => this.#changed.add(no),
  }

  constructor(limits: Partial<MinerLimits> = {}, nowMs: () => number = Date.now) {
    this.#limits = { ...DEFAULT_LIMITS, ...limits }
    this.#shares = new TemplateShares(this.#limits)
    this.#nowMs = nowMs
  }

  get size(): number {
    return this.#templates.length
  }

  /** Sets the ingest key of each source of the next messages and rows. A source that is missing has none. */
  setOwners(owners: ReadonlyMap<string, string>): void {
    this.#owners = owners
  }

  /** @returns the number of the message's template, 1 and up; never a redirected one */
  resolve(source: string, message: Uint8Array): number {
    const own = this.#admitted(source)
    if (own === null) return this.#catchAll('')
    this.#message.read(message)
    const no = own.resolve(this.#message)
    return no === 0 ? this.#catchAll(source) : no
  }

  /** Resolves a template that the producer sent with the message; its placeholders become values. */
  resolveReadyMade(source: string, template: string): number {
    if (this.#admitted(source) === null) return this.#catchAll('')
    const text = readyMadeText(template)
    const known = this.#byId.get(templateId(source, text))
    if (known !== undefined) return this.rootOf(known)
    this.#message.read(this.#encoder.encode(text))
    const no = this.#create(source, this.#message)
    return no === 0 ? this.#catchAll(source) : no
  }

  /** Follows redirects. @throws RangeError for a number that was never given */
  rootOf(no: number): number {
    let root = no
    for (
      let next = this.#template(root).redirect;
      next !== 0;
      next = this.#template(root).redirect
    ) {
      root = next
    }
    return root
  }

  /** The number of a stored id, 0 when it is unknown. */
  numberOf(id: string): number {
    return this.#byId.get(id) ?? 0
  }

  idOf(no: number): string {
    return this.#template(no).id
  }

  /** The current text; that of a redirected template does not change. */
  textOf(no: number): string {
    return this.#template(no).text
  }

  /**
   * Adds stored templates before the first message. They are numbered in the given order, so
   * the same list gets the same numbers; known ids and those above the limit of all templates are omitted.
   */
  restore(records: Iterable<TemplateRow>): void {
    const redirects: [number, string][] = []
    for (const record of records) {
      const template = this.#take(record)
      if (template === null) continue
      if (record.redirectId !== '') redirects.push([template.no, record.redirectId])
      this.#sources.get(record.source)?.adopt(template)
    }
    for (const [no, id] of redirects) {
      const target = this.#byId.get(id)
      if (target !== undefined && this.rootOf(target) !== no) this.#template(no).retire(target)
    }
  }

  /**
   * Adopts templates that other instances have stored, at any time. Those above the limits are left out.
   * `takeChanges` returns the result.
   */
  adopt(records: readonly TemplateRow[]): void {
    const fresh = new Set<string>()
    for (const record of records) {
      const no = this.#byId.get(record.id)
      if (no !== undefined) this.#lowerBirth(this.#template(no), record.born)
      else if (this.#admit(record)) fresh.add(record.id)
    }
    for (const { id, source, redirectId } of records) {
      const [from, into] = [this.#byId.get(id), this.#byId.get(redirectId)]
      if (from !== undefined && into !== undefined)
        this.#sources.get(source)?.join(this.#template(from), this.#template(into))
    }
    for (const record of records) if (!fresh.has(record.id)) this.#reread(record)
    for (const record of records) this.#compareWith(record)
  }

  #admit(record: TemplateRow): boolean {
    const own = this.#admitted(record.source)
    if (own === null || !this.#shares.hasRoom(record.source)) return false
    const template = this.#take(record)
    if (template === null) return false
    if (record.redirectId === '') own.admit(template)
    else own.adopt(template)
    this.#changed.add(template.no)
    return true
  }

  /** Creates a template from its row; null when it is known already or the limit of all templates is reached. */
  #take({ id, source, text, redirectId, born }: TemplateRow): Template | null {
    const isCatchAll = text === VALUE
    const isFull = this.#shares.used >= this.#limits.templates && !isCatchAll
    if (isFull || this.#byId.has(id)) return null
    if (!isCatchAll) {
      this.#source(source)
      this.#shares.setOwner(source, this.#owners.get(source) ?? '')
      this.#shares.add(source)
    }
    this.#message.read(this.#encoder.encode(text))
    const name = { no: this.#templates.length + 1, id, source, born }
    const template = new Template(name, this.#message)
    this.#templates.push(template)
    this.#byId.set(id, template.no)
    if (redirectId === '' && !isCatchAll) template.openAllGaps()
    return template
  }

  #lowerBirth(template: Template, born: number): void {
    if (born >= template.born) return
    template.born = born
    this.#changed.add(template.no)
    if (template.redirect !== 0) this.#sources.get(template.source)?.putOldestFirst(template)
  }

  #reread({ id, source, text, redirectId }: TemplateRow): void {
    const no = this.#byId.get(id)
    if (no === undefined || redirectId !== '') return
    const template = this.#template(no)
    if (template.redirect !== 0 || template.text === text) return
    this.#message.read(this.#encoder.encode(text))
    const other = new Template({ no: 0, id, source, born: template.born }, this.#message)
    other.openAllGaps()
    this.#sources.get(source)?.reread(template, other)
  }

  #compareWith({ id, text, redirectId, born }: TemplateRow): void {
    const no = this.#byId.get(id)
    if (no === undefined) return
    const template = this.#template(no)
    const isRoot = template.redirect === 0
    const isSame =
      template.born === born &&
      // Instances may have merged it into different templates.
      (isRoot ? redirectId === '' && template.text === text : redirectId !== '')
    const isUndecided = isRoot && redirectId !== '' && !this.#byId.has(redirectId)
    if (isSame || isUndecided || ++template.disputes > MAX_DISPUTES) this.#stored.add(no)
    else this.#changed.add(no)
  }

  /** Returns the templates that are new, have a new text, or were merged since the last call. */
  takeChanges(): MinedTemplate[] {
    const changes = [...this.#changed].map((no) => this.#toChange(this.#template(no)))
    this.#changed.clear()
    this.#stored.clear()
    return changes
  }

  #toChange(template: Template): MinedTemplate {
    const { no, id, source, text, born } = template
    const redirectId = template.redirect === 0 ? '' : this.#template(this.rootOf(no)).id
    return { no, id, source, text, redirectId, born, isNews: !this.#stored.has(no) }
  }

  /** The templates of a source; null when it has none and there is no room for one. */
  #admitted(name: string): SourceTemplates | null {
    const owner = this.#owners.get(name) ?? ''
    if (!this.#sources.has(name) && this.#shares.shareOf(owner) <= 0) return null
    this.#shares.setOwner(name, owner)
    return this.#source(name)
  }

  #source(name: string): SourceTemplates {
    let found = this.#sources.get(name)
    if (found === undefined) {
      found = new SourceTemplates(name, this.#numbers, this.#limits.evidencePerSource)
      this.#sources.set(name, found)
    }
    return found
  }

  #template(no: number): Template {
    const template = this.#templates[no - 1]
    if (template === undefined) throw new RangeError(`template number ${no} was never given`)
    return template
  }

  #create(source: string, message: MaskedMessage): number {
    if (!this.#shares.hasRoom(source)) return 0
    const id = templateId(source, message.text())
    const known = this.#byId.get(id)
    if (known !== undefined) return known
    if (message.text() !== VALUE) this.#shares.add(source)
    return this.#register(id, source, message)
  }

  #register(id: string, source: string, message: MaskedMessage): number {
    const no = this.#templates.length + 1
    // Templates of the same millisecond get different times, so that they are ordered.
    this.#lastBorn = Math.max(this.#lastBorn + 1, this.#nowMs() * 1000)
    this.#templates.push(new Template({ no, id, source, born: this.#lastBorn }, message))
    this.#byId.set(id, no)
    this.#changed.add(no)
    return no
  }

  /** Resolves to the template `<*>` of a source, which does not count towards the limits. */
  #catchAll(source: string): number {
    const id = templateId(source, VALUE)
    const known = this.#byId.get(id)
    if (known !== undefined) return this.rootOf(known)
    this.#message.read(this.#encoder.encode(VALUE))
    return this.#register(id, source, this.#message)
  }
}

/** Replaces the placeholders of the common loggers (`{name}`, `{}`, `${x}`, `%s`, `%(name)s`, `:name`) by `<*>`. */
const readyMadeText = (template: string): string =>
  template
    .slice(0, 8192)
    .replaceAll(/\$?\{[^{}]{0,64}\}|%\([^()]{1,64}\)[a-z]|%[-+0-9.]{0,8}[sdifxjoO]\b/g, VALUE)
    .trim()

const templateId = (source: string, text: string): string => hashId(`${source}\0${text}`)
