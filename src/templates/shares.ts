export interface ShareLimits {
  /** Templates of all sources. */
  readonly templates: number
  /** The largest share (0 to 1) of the free templates that a source may have. */
  readonly share: number
}

// bench/micro/mining.bench.ts: hostile senders fill about 110 MiB at this limit, a usual source 0.25 MiB.
export const SHARE_LIMITS: ShareLimits = { templates: 100_000, share: 0.03 }

interface SourceCount {
  owner: string
  templates: number
}

/** A source above this part of its share counts as crowded. */
const NEARLY = 0.8
const NONE: Readonly<SourceCount> = { owner: '', templates: 0 }

/**
 * Limits the templates of each source to a share of the free ones, so that free templates become
 * fewer with each greedy source, but never run out. A single source gets 2,913 of 100,000, each of
 * 40 greedy sources 1,363, and a new source as many as each of them. The templates of all sources
 * of one ingest key (their owner) count twice towards the shares of these sources, so that all
 * sources of a key get half of the templates together, and others the other half. Sources that
 * users registered have no owner.
 * Source: Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches" (1998).
 */
export class TemplateShares {
  readonly #limits: ShareLimits
  readonly #sources = new Map<string, SourceCount>()
  readonly #owners = new Map<string, number>()
  #used = 0

  constructor(limits: ShareLimits = SHARE_LIMITS) {
    this.#limits = limits
  }

  get used(): number {
    return this.#used
  }

  /** Whether the source may have another template. */
  hasRoom(source: string): boolean {
    const { owner, templates } = this.#sources.get(source) ?? NONE
    return templates < this.shareOf(owner)
  }

  /** The sources that have nearly or more than their share. */
  crowded(): readonly string[] {
    const isCrowded = ({ owner, templates }: SourceCount): boolean =>
      templates >= NEARLY * this.shareOf(owner)
    return [...this.#sources].filter(([, count]) => isCrowded(count)).map(([name]) => name)
  }

  /** The number of templates that each source of this owner may have now. */
  shareOf(owner: string): number {
    const twice = owner === '' ? 0 : (this.#owners.get(owner) ?? 0)
    return this.#limits.share * (this.#limits.templates - this.#used - twice)
  }

  add(source: string): void {
    const count = this.#source(source)
    count.templates++
    this.#used++
    this.#owners.set(count.owner, (this.#owners.get(count.owner) ?? 0) + 1)
  }

  /** @param owner '' for none */
  setOwner(source: string, owner: string): void {
    const count = this.#source(source)
    if (count.owner === owner) return
    const { templates } = count
    this.#owners.set(count.owner, (this.#owners.get(count.owner) ?? 0) - templates)
    this.#owners.set(owner, (this.#owners.get(owner) ?? 0) + templates)
    count.owner = owner
  }

  #source(name: string): SourceCount {
    let found = this.#sources.get(name)
    if (found === undefined) this.#sources.set(name, (found = { ...NONE }))
    return found
  }
}
