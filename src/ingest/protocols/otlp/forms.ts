import type { MessageForm } from '../message-form.js'

/**
 * The messages of OpenTelemetry's protocol (opentelemetry-proto 1.x). A request has resources
 * (field 1), each with a description (1) and scopes (2), each with a description (1) and items (2):
 * log records, spans or metrics.
 */
export const RESOURCE: MessageForm = { 1: ['attributes', 'attributes'] }
export const SCOPE: MessageForm = { 1: ['name', 'text'] }

export const LOG_RECORD: MessageForm = {
  1: ['timeUnixNano', 'time'],
  2: ['severityNumber', 'int'],
  3: ['severityText', 'text'],
  5: ['body', 'any'],
  6: ['attributes', 'attributes'],
  9: ['traceId', 'id'],
  10: ['spanId', 'id'],
  11: ['observedTimeUnixNano', 'time'],
  12: ['eventName', 'text'],
}

const SPAN_EVENT: MessageForm = {
  1: ['timeUnixNano', 'time'],
  2: ['name', 'text'],
  3: ['attributes', 'attributes'],
}

const LINK: MessageForm = {
  1: ['traceId', 'id'],
  2: ['spanId', 'id'],
  4: ['attributes', 'attributes'],
}

export const SPAN: MessageForm = {
  1: ['traceId', 'id'],
  2: ['spanId', 'id'],
  4: ['parentSpanId', 'id'],
  5: ['name', 'text'],
  6: ['kind', 'int'],
  7: ['startTimeUnixNano', 'time'],
  8: ['endTimeUnixNano', 'time'],
  9: ['attributes', 'attributes'],
  11: ['events', [SPAN_EVENT]],
  13: ['links', [LINK]],
  15: ['status', { 2: ['message', 'text'], 3: ['code', 'int'] }],
}

const NUMBER_POINT: MessageForm = {
  3: ['timeUnixNano', 'time'],
  4: ['asDouble', 'double'],
  6: ['asInt', 'sfixed'],
  7: ['attributes', 'attributes'],
}

const HISTOGRAM_POINT: MessageForm = {
  3: ['timeUnixNano', 'time'],
  4: ['count', 'fixed'],
  5: ['sum', 'double'],
  6: ['bucketCounts', 'fixeds'],
  7: ['explicitBounds', 'doubles'],
  9: ['attributes', 'attributes'],
  11: ['min', 'double'],
  12: ['max', 'double'],
}

const BUCKETS: MessageForm = { 1: ['offset', 'sint'], 2: ['bucketCounts', 'ints'] }

const EXPONENTIAL_POINT: MessageForm = {
  1: ['attributes', 'attributes'],
  3: ['timeUnixNano', 'time'],
  4: ['count', 'fixed'],
  5: ['sum', 'double'],
  6: ['scale', 'sint'],
  7: ['zeroCount', 'fixed'],
  8: ['positive', BUCKETS],
  9: ['negative', BUCKETS],
  12: ['min', 'double'],
  13: ['max', 'double'],
}

const SUMMARY_POINT: MessageForm = {
  3: ['timeUnixNano', 'time'],
  4: ['count', 'fixed'],
  5: ['sum', 'double'],
  6: ['quantileValues', [{ 1: ['quantile', 'double'], 2: ['value', 'double'] }]],
  7: ['attributes', 'attributes'],
}

const points = (point: MessageForm): MessageForm => ({
  1: ['dataPoints', [point]],
  2: ['aggregationTemporality', 'int'],
})

export const METRIC: MessageForm = {
  1: ['name', 'text'],
  3: ['unit', 'text'],
  5: ['gauge', points(NUMBER_POINT)],
  7: ['sum', points(NUMBER_POINT)],
  9: ['histogram', points(HISTOGRAM_POINT)],
  10: ['exponentialHistogram', points(EXPONENTIAL_POINT)],
  11: ['summary', points(SUMMARY_POINT)],
}
