import { Type, type Static } from '@sinclair/typebox'

export const TIMELINE_KINDS = ['created', 'changed', 'transition', 'note'] as const

/** One thing that happened to an incident. */
export const TimelineEntryDoc = Type.Object({
  atMs: Type.Integer(),
  actorId: Type.String(),
  kind: Type.Union(TIMELINE_KINDS.map((kind) => Type.Literal(kind))),
  text: Type.String(),
})
export type TimelineEntry = Readonly<Static<typeof TimelineEntryDoc>>

/** Together well below what one record may hold, also when every character is escaped. */
export const MAX_TIMELINE_ENTRIES = 1_000
const MAX_TIMELINE_CHARS = 400_000

/** Adds an entry. The first stays; the oldest after it go when there are too many or they are too long. */
export function appendEntry(
  timeline: readonly TimelineEntry[],
  entry: TimelineEntry,
): TimelineEntry[] {
  const [first, ...rest] = [...timeline, entry]
  if (first === undefined) return []
  let chars = rest.reduce((sum, { text }) => sum + text.length, first.text.length)
  let from = Math.max(0, rest.length - (MAX_TIMELINE_ENTRIES - 1))
  for (let i = 0; i < from; i++) chars -= rest[i]?.text.length ?? 0
  while (chars > MAX_TIMELINE_CHARS && from < rest.length - 1) {
    chars -= rest[from]?.text.length ?? 0
    from++
  }
  return [first, ...rest.slice(from)]
}
