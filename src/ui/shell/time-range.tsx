import { Icon } from '../lib/icon.js'
import { lazy } from '../lib/lazy.js'
import { setRange } from '../lib/range.js'
import { zone } from '../lib/settings.js'
import { rangeLabel, toRange, toSpan, type Range, type Span } from '../lib/time.js'
import { Menu } from './menu.js'

const RangeChoices = lazy(async () => (await import('../later.js')).RangeChoices)

interface TimeRangeProps {
  readonly range: Range
  /** Loads everything again. */
  readonly onRefresh: () => void
}

/** Chooses the time range of a screen. */
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
        {(close) => <RangeChoices range={range} close={close} onChoose={setRange} />}
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
