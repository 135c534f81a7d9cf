/*
 * The thread of the miner. It finds the templates of the signatures that the encoding threads could not look up, and
 * adopts those of other instances. One thread mines all messages, so that each template has one number in the process.
 */
import { TemplateMiner } from '../templates/miner.js'
import type { MissBlock } from './block.js'
import type { MinedTemplate } from '../templates/registry.js'
import type { TemplateRow } from '../wal/record.js'

/** Signatures without a template, as in a `MissBlock`, each with its source. */
export interface MissTask extends Pick<MissBlock, 'bytes' | 'ends' | 'readyMade'> {
  readonly sources: readonly string[]
}

/** The ingest key that registered each source; sources without one are missing. */
export type Owners = ReadonlyMap<string, string>

/** A task of the miner with the owners of its sources. */
export interface Owned<T> {
  readonly task: T
  readonly owners: Owners
}

export interface MissResult {
  /** Template number of each miss. */
  readonly nos: Int32Array
  readonly changes: readonly MinedTemplate[]
}

/** Null until `restore`, because a thread that replaces a dead one has no templates. */
let miner: TemplateMiner | null = null

/**
 * Replaces the miner by one with the known templates. There is one miner's thread in the process.
 *
 * @returns the number of each template, 0 beyond the limits; the same numbers for the same list
 */
export function restore({ task: templates, owners }: Owned<readonly TemplateRow[]>): Int32Array {
  const fresh = new TemplateMiner()
  fresh.setOwners(owners)
  fresh.restore(templates)
  fresh.takeChanges()
  miner = fresh
  return Int32Array.from(templates, ({ id }) => fresh.numberOf(id))
}

/** @returns null when this thread must be restored first */
export function resolveMisses({ task, owners }: Owned<MissTask>): MissResult | null {
  if (miner === null) return null
  const { bytes, ends, sources, readyMade } = task
  miner.setOwners(owners)
  const nos = new Int32Array(ends.length)
  let start = 0
  for (let i = 0; i < nos.length; i++) {
    const end = ends[i] ?? start
    const text = bytes.subarray(start, end)
    const source = sources[i] ?? ''
    nos[i] =
      readyMade[i] === 1
        ? miner.resolveReadyMade(source, Buffer.from(text).toString())
        : miner.resolve(source, text)
    start = end
  }
  return { nos, changes: miner.takeChanges() }
}

/** Answers a readiness check. */
export const ping = (): true => true

/**
 * Adopts templates that other instances have stored.
 *
 * @returns the templates that changed; null when this thread must be restored first
 */
export function adopt({
  task: templates,
  owners,
}: Owned<readonly TemplateRow[]>): readonly MinedTemplate[] | null {
  if (miner === null) return null
  miner.setOwners(owners)
  miner.adopt(templates)
  return miner.takeChanges()
}
