import { useState } from 'preact/hooks'

import { Icon } from '../lib/icon.js'
import { place, setParams } from '../lib/router.js'
import { zone } from '../lib/settings.js'
import {
  QUICK_RANGES,
  rangeLabel,
  toMs,
  toRange,
  toSpan,
  type Range,
  type Span,
} from '../lib/time.js'
import { Menu } from './menu.js'

export const setRange = (range: Range): void => setParams({ from: range.from, to: range.to })

interface TimeRangeProps {
  readonly range: Range
  /** Reads everything again. */
  readonly onRefresh: () => void
}

/** Chooses the span of time that a screen shows. */
export function TimeRange({ range, onRefresh }: TimeRangeProps) {
  const move = (change: (span: Span, width: number) => Span): void => {
    const span = toSpan(range, Date.now())
    setRange(toRange(change(span, span.toMs - span.fromMs)))
  }
  return (
    <div class="time-range">
      <button
        class="quiet square"
        aria-label="Earlier"
        title="Earlier"
        onClick={() =>
          move((span, width) => ({ fromMs: span.fromMs - width / 2, toMs: span.toMs - width / 2 }))
        }
      >
        <Icon name="chevron-left" />
      </button>
      <Menu
        label={`Time range: ${rangeLabel(range, zone.value, Date.now())}`}
        class="range"
        face={
          <>
            <Icon name="clock" /> <span>{rangeLabel(range, zone.value, Date.now())}</span>
            <Icon name="chevron-down" size={14} />
          </>
        }
      >
        {(close) => <Choices range={range} close={close} />}
      </Menu>
      <button
        class="quiet square"
        aria-label="Later"
        title="Later"
        disabled={range.to === 'now'}
        onClick={() =>
          move((span, width) => ({ fromMs: span.fromMs + width / 2, toMs: span.toMs + width / 2 }))
        }
      >
        <Icon name="chevron-right" />
      </button>
      <button
        class="quiet square wide-only"
        aria-label="Zoom out"
        title="Zoom out"
        onClick={() =>
          move((span, width) => ({
            fromMs: span.fromMs - width / 2,
            toMs: Math.min(Date.now(), span.toMs + width / 2),
          }))
        }
      >
        <Icon name="zoom-out" />
      </button>
      <button class="quiet square" aria-label="Refresh" title="Refresh" onClick={onRefresh}>
        <Icon name="refresh-cw" />
      </button>
    </div>
  )
}

function Choices({ range, close }: { readonly range: Range; readonly close: () => void }) {
  const [from, setFrom] = useState(range.from)
  const [to, setTo] = useState(range.to)
  const nowMs = Date.now()
  const start = toMs(from.trim(), nowMs)
  const end = toMs(to.trim(), nowMs)
  const problem =
    start === null || end === null
      ? 'A time is ISO 8601, or relative such as now-2h.'
      : start >= end
        ? 'The start must be before the end.'
        : ''
  const submit = (event: Event): void => {
    event.preventDefault()
    if (problem !== '') return
    setRange({ from: from.trim(), to: to.trim() })
    close()
  }
  return (
    <div class="range-choices">
      <div>
        {QUICK_RANGES.map((quick) => (
          <button
            key={quick.from}
            class="item"
            onClick={() => {
              setRange({ from: quick.from, to: 'now' })
              close()
            }}
          >
            {quick.label}
            {range.from === quick.from && range.to === 'now' && <Icon name="check" />}
          </button>
        ))}
      </div>
      <form onSubmit={submit}>
        <label class="field">
          From
          <input value={from} spellcheck={false} onInput={(e) => setFrom(e.currentTarget.value)} />
        </label>
        <label class="field">
          To
          <input value={to} spellcheck={false} onInput={(e) => setTo(e.currentTarget.value)} />
        </label>
        <p class="note">{problem === '' ? 'now-2h, or 2026-05-04T10:00:00Z' : problem}</p>
        <button class="primary" disabled={problem !== ''}>
          Show
        </button>
      </form>
    </div>
  )
}

/** The range that the address names. */
export const currentRange = (): Range => ({
  from: place.value.params.get('from') ?? 'now-1h',
  to: place.value.params.get('to') ?? 'now',
})
