import type { RejectReason } from '../model/event.js'

/** Why the messages of a source must not be stored. */
export type SourceVerdict =
  | 'drop'
  | Extract<RejectReason, 'unknown_source' | 'source_limit' | 'key_source_limit'>

/**
 * The verdicts on the sources of a body. A body may have a new source for each of a hundred
 * thousand messages, and naming each of them to the worker would block the main thread, so the most
 * frequent verdict is the default.
 */
export interface Verdicts {
  readonly named: ReadonlyMap<string, SourceVerdict | 'store'>
  readonly others: SourceVerdict | 'store'
}

/** One shared object, because `packTask` joins bodies with identical verdicts. */
export const NO_VERDICTS: Verdicts = Object.freeze({ named: new Map(), others: 'store' })

export const verdictOf = ({ named, others }: Verdicts, source: string): SourceVerdict | 'store' =>
  named.get(source) ?? others

/**
 * @param sources those of the body's messages that were to be stored so far
 * @param found the verdicts on some of them
 */
export function withFound(
  before: Verdicts,
  sources: readonly string[],
  found: ReadonlyMap<string, SourceVerdict>,
): Verdicts {
  if (found.size === 0) return before
  // The list of sources is complete only when none was refused before.
  const others = before === NO_VERDICTS ? commonest(sources, found) : before.others
  const named = new Map(before.named)
  for (const source of sources) {
    const verdict = found.get(source) ?? 'store'
    if (verdict === others) named.delete(source)
    else named.set(source, verdict)
  }
  return { named, others }
}

function commonest(
  sources: readonly string[],
  found: ReadonlyMap<string, SourceVerdict>,
): SourceVerdict | 'store' {
  const counts = new Map<SourceVerdict | 'store', number>([['store', sources.length - found.size]])
  for (const verdict of found.values()) counts.set(verdict, (counts.get(verdict) ?? 0) + 1)
  const [[most] = ['store' as const]] = [...counts].toSorted(([, a], [, b]) => b - a)
  return most
}
