/** Groups values by a key; the keys are in the order of their first value. */
export function groupedBy<T>(all: readonly T[], keyOf: (one: T) => string): readonly [T, ...T[]][] {
  const groups = new Map<string, [T, ...T[]]>()
  for (const one of all) {
    const group = groups.get(keyOf(one))
    if (group === undefined) groups.set(keyOf(one), [one])
    else group.push(one)
  }
  return [...groups.values()]
}
