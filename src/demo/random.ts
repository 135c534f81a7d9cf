/** A pseudorandom number generator with a seed. */
export interface Random {
  /** From 0 up to 1. */
  share(): number
  /** A whole number; both ends are included. */
  between(low: number, high: number): number
  pick<T>(choices: readonly T[]): T
  isOne(inHowMany: number): boolean
  /** A number around `typical`, seldom far above it, as durations are. */
  skewed(typical: number): number
  /** Lower-case hexadecimal digits. */
  hex(digits: number): string
}

/** Source: the mulberry32 generator of Tommy Ettinger, which is in the public domain. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const share = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const between = (low: number, high: number): number =>
    low + Math.floor(share() * (high - low + 1))
  return {
    share,
    between,
    pick: (choices) => {
      const chosen = choices[between(0, choices.length - 1)]
      if (chosen === undefined) throw new Error('bug: nothing to choose from')
      return chosen
    },
    isOne: (inHowMany) => share() * inHowMany < 1,
    skewed: (typical) =>
      Math.max(1, Math.round(typical * (0.5 - Math.log(1 - share() * 0.98) * 0.6))),
    hex: (digits) => Array.from({ length: digits }, () => between(0, 15).toString(16)).join(''),
  }
}
