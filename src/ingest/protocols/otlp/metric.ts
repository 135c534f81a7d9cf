import { createHash } from 'node:crypto'

import { rawText } from '../../formats/json-text.js'
import { isRecord, type JsonRecord } from '../../formats/json-value.js'
import { finite } from '../message-form.js'
import { filled } from './log-record.js'
import type { Common } from './origin.js'
import { attributesOf } from './request.js'

const TEMPORALITIES = ['', 'delta', 'cumulative'] as const
const SHAPES = ['gauge', 'sum', 'histogram', 'exponentialHistogram', 'summary'] as const

/**
 * Maps the points of a metric to records of `/ingest` of the type `metric`. Points are deduplicated
 * by series and time, because the next point may have the same value.
 */
export function* toPoints(
  item: JsonRecord,
  { fields, tags: common }: Common,
): Generator<JsonRecord> {
  const { name, unit } = item
  const message = typeof name === 'string' && name !== '' ? name : 'metric without a name'
  for (const shape of SHAPES) {
    const data = item[shape]
    if (!isRecord(data)) continue
    const temporality = TEMPORALITIES[Number(data['aggregationTemporality'] ?? 0)]
    for (const point of recordsIn(data['dataPoints'])) {
      const series = { unit, temporality, ...attributesOf(point), ...common }
      const ms = point['timeUnixNano']
      yield {
        ...fields,
        type: 'metric',
        timestamp: typeof ms === 'number' && ms > 0 ? Math.floor(ms) : undefined,
        severity: 'INFO',
        message,
        dedup_key: keyOf(message, ms, [fields, series]),
        tags: filled({ ...valuesOf(point, shape), ...series }),
      }
    }
  }
}

const keyOf = (name: string, ms: unknown, series: unknown): string =>
  createHash('sha256')
    .update(rawText([name, ms, series]))
    .digest('base64url')

function valuesOf(point: JsonRecord, shape: (typeof SHAPES)[number]): JsonRecord {
  const { count, sum, min, max } = point
  const totals = {
    count,
    sum: numberOf(sum),
    min: numberOf(min),
    max: numberOf(max),
  }
  switch (shape) {
    case 'gauge':
    case 'sum':
      return { value: numberOf(point['asDouble'] ?? point['asInt']) }
    case 'histogram':
      return { ...totals, buckets: bucketsOf(point) }
    case 'exponentialHistogram':
      return { ...totals, buckets: scaledBucketsOf(point) }
    case 'summary':
      return { count, sum: numberOf(sum), quantiles: point['quantileValues'] }
  }
}

const numberOf = (value: unknown): unknown => (typeof value === 'number' ? finite(value) : value)

const numbersIn = (value: unknown): readonly number[] =>
  Array.isArray(value) ? value.filter((item): item is number => typeof item === 'number') : []

const recordsIn = (value: unknown): readonly JsonRecord[] =>
  Array.isArray(value) ? value.filter(isRecord) : []

/** Buckets with their upper bounds, as Prometheus writes them. */
function bucketsOf({ bucketCounts, explicitBounds }: JsonRecord): readonly object[] | undefined {
  const bounds = numbersIn(explicitBounds)
  const buckets = numbersIn(bucketCounts).map((count, i) => ({ le: bounds[i] ?? '+Inf', count }))
  return buckets.length === 0 ? undefined : buckets
}

/** The bounds of an exponential histogram are powers of 2^(2^-scale). */
function scaledBucketsOf(point: JsonRecord): readonly object[] | undefined {
  const base = 2 ** (2 ** -Number(point['scale'] ?? 0))
  const side = (
    value: unknown,
    sign: 1 | -1,
  ): readonly { le: number | string; count: number }[] => {
    if (!isRecord(value)) return []
    const offset = Number(value['offset'] ?? 0) + (sign === 1 ? 1 : 0)
    return numbersIn(value['bucketCounts']).map((count, i) => ({
      le: finite(sign * base ** (offset + i)),
      count,
    }))
  }
  const zeros = Number(point['zeroCount'] ?? 0)
  const buckets = [
    ...side(point['negative'], -1).toReversed(),
    ...(zeros > 0 ? [{ le: 0, count: zeros }] : []),
    ...side(point['positive'], 1),
  ].filter(({ count }) => count > 0)
  return buckets.length === 0 ? undefined : buckets
}
