/**
 * Counts whose spread exceeds Poisson's by a share of their mean: variance = μ + (φ·μ)², which is a negative
 * binomial of size 1/φ². One law serves a template seen twice a day and a source of millions an hour.
 */

/** Below this mean a count is judged as if this many were expected: no series is certain to stay empty. */
const LEAST_MEAN = 0.05

/**
 * How surprising a count is, in standard deviations of a normal law; its sign is that of `count - mean`.
 *
 * The signed root of the deviance is near normal down to small means and follows the skew of counts, so one
 * threshold means the same for rare and frequent series, for drops and spikes.
 *
 * @param mean at least 0
 * @param dispersion φ, 0 = Poisson
 */
export function surprise(count: number, mean: number, dispersion: number): number {
  const mu = Math.max(mean, LEAST_MEAN)
  const y = Math.max(count, 0)
  const size = 1 / Math.max(dispersion * dispersion, 1e-9)
  const own = y === 0 ? 0 : y * Math.log(y / mu)
  const deviance = 2 * (own - (y + size) * Math.log((y + size) / (mu + size)))
  const root = Math.sqrt(Math.max(deviance, 0))
  return y >= mu ? root : -root
}

/** The counts whose surprise stays within ±`width`, as [least, most]. */
export function expectedRange(
  mean: number,
  dispersion: number,
  width: number,
): readonly [least: number, most: number] {
  const deviation = Math.sqrt(mean + (dispersion * mean) ** 2) + 1
  const most = bisect(mean, mean + deviation * width * 8 + 30, (y) => {
    return surprise(y, mean, dispersion) <= width
  })
  const least = surprise(0, mean, dispersion) >= -width ? 0 : lowest(mean, dispersion, width)
  return [least, most]
}

const lowest = (mean: number, dispersion: number, width: number): number =>
  bisect(0, mean, (y) => surprise(y, mean, dispersion) < -width)

/** Where `holds` stops holding, between a point where it does and one where it does not. */
function bisect(from: number, to: number, holds: (value: number) => boolean): number {
  let [low, high] = [from, to]
  for (let i = 0; i < 40 && high - low > 0.01; i++) {
    const middle = (low + high) / 2
    if (holds(middle)) low = middle
    else high = middle
  }
  return (low + high) / 2
}

/**
 * Chance that a normal deviate is at least so far from 0, on either side; relative error below 1 %.
 *
 * Source: Abramowitz and Stegun 7.1.26 near 0, the asymptotic series 7.1.23 in the tail.
 */
export function twoSidedChance(deviations: number): number {
  const x = Math.abs(deviations) / Math.SQRT2
  if (x > 2.5) {
    const tail = 1 - 1 / (2 * x ** 2) + 3 / (4 * x ** 4) - 15 / (8 * x ** 6)
    return (Math.exp(-x * x) * tail) / (x * Math.sqrt(Math.PI))
  }
  const t = 1 / (1 + 0.3275911 * x)
  const inner = t * (-1.453152027 + t * 1.061405429)
  const poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + inner)))
  return Math.min(1, poly * Math.exp(-x * x))
}
