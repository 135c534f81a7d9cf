import { place, setParams } from './router.js'
import type { Range } from './time.js'

export const setRange = (range: Range): void => setParams({ from: range.from, to: range.to })

/** The time range in the address. */
export const currentRange = (): Range => ({
  from: place.value.params.get('from') ?? 'now-1h',
  to: place.value.params.get('to') ?? 'now',
})
