export interface ShareLimits {
  /** Templates of all sources. */
  readonly templates: number
  /** A source may have at most this share (0 to 1) of the templates that are free. */
  readonly share: number
}

// bench/micro/mining.bench.ts: hostile senders fill about 110 MiB at this limit, a usual source 0.25 MiB.
export const SHARE_LIMITS: ShareLimits = { templates: 100_000, share: 0.03 }

interface SourceCount {
  owner: string
  templates: number
}

/** A share is nearly used up when this part of it is. */
const NEARLY = 0.8
const NONE: Readonly<SourceCount> = { owner: '', templates: 0 }

/**
 * How many templates a source may have: a share of those that are free, by which what is free shrinks with each greedy
 * source and is never used up. A source alone gets 2,913 of 100,000, each of 40 greedy sources 1,363, and a new source
 * as many as each of them.
 *
 * The templates of all sources of one ingest key (their owner) count twice towards the shares of these sources, so that
 * one key's sources get half of the templates together, and leave the other half to others. Sources that people
 * registered have no owner.
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

  /** Whether the source may have one more template. */
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

  /** How many templates each source of this owner may have at present. */
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
