import * as hdr from 'hdr-histogram-js'

const PERCENTILES = [0, 10, 25, 50, 75, 90, 95, 99, 99.9, 100]

/** Latencies in microseconds, from 1 µs to 10 minutes, to three digits. */
export class Latencies {
  readonly #histogram: hdr.Histogram

  constructor(encoded?: string) {
    this.#histogram =
      encoded === undefined
        ? hdr.build({ highestTrackableValue: 600_000_000, numberOfSignificantValueDigits: 3 })
        : hdr.decodeFromCompressedBase64(encoded)
  }

  /** @param ms may have a fraction */
  record(ms: number): void {
    this.#histogram.recordValue(Math.min(Math.max(1, Math.round(ms * 1000)), 600_000_000))
  }

  get count(): number {
    return this.#histogram.totalCount
  }

  /** @param percentile 0..100 @returns milliseconds */
  at(percentile: number): number {
    return this.#histogram.getValueAtPercentile(percentile) / 1000
  }

  /** The points of a plot. */
  curve(): readonly (readonly [percentile: number, ms: number])[] {
    return PERCENTILES.map((at) => [at, this.at(at)] as const)
  }

  /** The encoded histogram, for another process. */
  encoded(): string {
    return hdr.encodeIntoCompressedBase64(this.#histogram)
  }
}
