/**
 * The quantile of the first `count` values, which it reorders; 0 for none.
 *
 * @param share 0..1
 * Source: quickselect (Hoare, Algorithm 65: FIND, 1961).
 */
export function quantileOf(values: Float64Array, count: number, share: number): number {
  if (count <= 0) return 0
  const wanted = Math.min(count - 1, Math.max(0, Math.round(share * (count - 1))))
  let [low, high] = [0, count - 1]
  while (low < high) {
    const at = partition(values, low, high)
    if (wanted <= at) high = at
    else low = at + 1
  }
  return values[wanted] ?? 0
}

/** @returns an index up to which no value is greater than any after it */
function partition(values: Float64Array, low: number, high: number): number {
  const pivot = values[(low + high) >>> 1] ?? 0
  let [i, j] = [low - 1, high + 1]
  for (;;) {
    do i++
    while ((values[i] ?? 0) < pivot)
    do j--
    while ((values[j] ?? 0) > pivot)
    if (i >= j) return j
    const left = values[i] ?? 0
    values[i] = values[j] ?? 0
    values[j] = left
  }
}
