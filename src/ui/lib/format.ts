const plain = new Intl.NumberFormat('en-US')
const compact = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 })

export const count = (n: number): string => plain.format(n)

/** A short form of a number: `12.4K`. */
export const short = (n: number): string => (n < 10_000 ? plain.format(n) : compact.format(n))

export function percent(share: number): string {
  if (share === 0) return '0 %'
  if (share < 0.001) return '< 0.1 %'
  return `${share >= 0.1 ? Math.round(share * 100) : (share * 100).toFixed(1)} %`
}

/** A rate per second. */
export function perSecond(rate: number): string {
  if (rate >= 10) return short(Math.round(rate))
  return rate === 0 || rate >= 0.1 ? rate.toFixed(1) : '< 0.1'
}

/** `1 event`, `2 events`. */
export const counted = (n: number, noun: string): string =>
  `${count(n)} ${noun}${n === 1 ? '' : 's'}`
