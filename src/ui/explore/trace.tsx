import { call } from '../lib/api.js'
import { counted } from '../lib/format.js'
import { useLoad } from '../lib/load.js'
import { oneLine } from '../lib/message.js'
import type { Detail, Row } from './rows.js'
import { Problem } from '../shell/problem.js'

interface Span extends Row {
  readonly depth: number
  readonly duration_ms: number | null
  readonly is_error: boolean
}

interface TraceReply {
  readonly start: string | null
  readonly end: string | null
  readonly duration_ms: number
  readonly sources: readonly string[]
  readonly spans: readonly Span[]
  readonly has_more_spans: boolean
  readonly logs: readonly Row[]
  readonly has_more_logs: boolean
}

interface TraceProps {
  readonly event: Detail
  readonly onOpen: (id: number) => void
}

const seconds = (ms: number): string =>
  ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(2)} s`

/** The spans and events of a trace over its time. */
export function TraceView({ event, onOpen }: TraceProps) {
  const loaded = useLoad(`trace ${event.trace_id}`, (signal) =>
    call<TraceReply>(`/api/traces/${encodeURIComponent(event.trace_id)}`, { signal }),
  )
  const { value } = loaded
  if (loaded.error !== null) return <Problem of={loaded} />
  if (value === null) return <div class="found waiting" aria-busy="true" />
  const startMs = Date.parse(value.start ?? event.timestamp)
  const wholeMs = Math.max(1, value.duration_ms)
  const at = (row: Row): number =>
    (Math.max(0, Date.parse(row.timestamp) - startMs) / wholeMs) * 100
  const logs = value.logs.toSorted((a, b) => a.timestamp.localeCompare(b.timestamp))
  return (
    <div class="trace">
      <p class="note">
        {seconds(value.duration_ms)} in {value.sources.join(', ')};{' '}
        {counted(value.spans.length, 'span')}, {counted(value.logs.length, 'event')}
        {(value.has_more_spans || value.has_more_logs) && ', and more'}
      </p>
      <ol>
        {value.spans.map((span) => (
          <li key={span.id} aria-current={span.id === event.id}>
            <button onClick={() => onOpen(span.id)} title={span.message}>
              <span
                class="what"
                style={{ paddingInlineStart: `${Math.min(span.depth, 12) * 10}px` }}
              >
                <b>{span.source}</b> {oneLine(span.message, 200)}
              </span>
              <span class="lane">
                <i
                  class={span.is_error ? 'bad-span' : ''}
                  style={{
                    left: `${at(span)}%`,
                    width: `max(2px, ${((span.duration_ms ?? 0) / wholeMs) * 100}%)`,
                  }}
                />
              </span>
              <small>{span.duration_ms === null ? '' : seconds(span.duration_ms)}</small>
            </button>
          </li>
        ))}
        {logs.map((row) => (
          <li key={row.id} aria-current={row.id === event.id}>
            <button onClick={() => onOpen(row.id)} title={row.message}>
              <span class="what">
                <b>{row.source}</b> {oneLine(row.message, 200)}
              </span>
              <span class="lane">
                <i class={`dot ${row.severity.toLowerCase()}`} style={{ left: `${at(row)}%` }} />
              </span>
              <small>+{seconds(Math.max(0, Date.parse(row.timestamp) - startMs))}</small>
            </button>
          </li>
        ))}
      </ol>
    </div>
  )
}
