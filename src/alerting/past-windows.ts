import type { Count } from './count.js'
import { SlotCounts } from './slot-counts.js'

interface Slots {
  readonly first: number
  /** Exclusive. */
  readonly end: number
  /** The length of a window in slots. */
  readonly length: number
  /** The distance to the end of the earlier window in slots. */
  readonly ago: number
}

/** For each group and slot, what was counted in the window that ended `ago` slots before. */
export function windowsOf(counts: readonly Count[], slots: Slots): readonly Count[] {
  const groups = new Map<string, { readonly group: readonly string[]; readonly own: SlotCounts }>()
  for (const { group, slot, count } of counts) {
    const key = JSON.stringify(group)
    const known = groups.get(key) ?? { group, own: new SlotCounts() }
    groups.set(key, known)
    known.own.add(slot + slots.ago, count)
  }
  const found: Count[] = []
  for (const { group, own } of groups.values())
    for (let slot = slots.first; slot < slots.end; slot++) {
      const count = own.sum(slot + 1 - slots.length, slot + 1)
      if (count > 0) found.push({ slot, group, count })
    }
  return found
}
