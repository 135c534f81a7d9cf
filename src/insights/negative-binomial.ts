/**
 * Counts with variance μ + (φ·μ)²: a negative binomial distribution of size 1/φ². It fits a template seen twice a day
 * and a source of millions an hour.
 */

/** The least expected count, because no series is certain to stay empty. */
const LEAST_MEAN = 0.05

/**
 * The deviance residual of a count: near a standard normal deviate down to small means, with the sign of
 * `count - mean`. So one threshold serves rare and frequent series, drops and spikes.
 *
 * @param dispersion φ, 0 = Poisson
 * Source: McCullagh and Nelder, Generalized Linear Models, 1989, section 2.4.
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

/** The interval of counts whose surprise is within ±`width`. */
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

/** Finds where `holds` becomes false between `from`, where it is true, and `to`. */
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
 * The two-sided p-value of a standard normal deviate; relative error below 1 %.
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
