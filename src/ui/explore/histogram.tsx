import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'

import { count, counted, short } from '../lib/format.js'
import { lazy } from '../lib/lazy.js'
import { shownTheme, zone } from '../lib/settings.js'
import { clock, shortTime, type Span } from '../lib/time.js'
import type { Histogram } from './answers.js'
import { colorsOf, orderOf, partName, partOf } from './stack.js'
import { useUsual, type UsualReply } from './usual.js'

const UsualBand = lazy(async () => (await import('../later.js')).UsualBand)

const HEIGHT = 112

interface HistogramProps {
  readonly histogram: Histogram
  readonly onZoom: (span: Span) => void
  /** Explains a span, which was selected with Shift. */
  readonly onWhy?: (span: Span) => void
  /** The span that "Why this?" explains, as `FROM..TO`; it is shaded in the chart. */
  readonly why?: string | null
}

/** A stacked bar chart of the matches over time. A brush with the pointer or the keyboard zooms in. */
export function HistogramChart(props: HistogramProps) {
  const { histogram: newest, onZoom, onWhy = onZoom, why = null } = props
  /** The histogram under a brush stays until the brush ends, whatever is loaded meanwhile. */
  const brushed = useRef<Histogram | null>(null)
  const [, redraw] = useState(0)
  const histogram = brushed.current ?? newest
  const root = useRef<HTMLDivElement>(null)
  const chart = useRef<uPlot | null>(null)
  const [hovered, setHovered] = useState<number | null>(null)
  const [brush, setBrush] = useState<Brush | null>(null)
  const { buckets, step_s: step } = histogram
  const usual = useUsual(histogram)
  const times = buckets.map(({ t }) => Date.parse(t))
  const brushedSpan = ({ from, to }: Brush): readonly [number, number] => [
    times[Math.min(from, to)] ?? 0,
    (times[Math.max(from, to)] ?? 0) + step * 1000,
  ]

  useEffect(() => {
    const element = root.current
    if (element === null) return
    const made = draw(element, histogram, {
      onHover: setHovered,
      onSelect: (from, to, isWhy) => {
        // A removed chart still receives the end of a drag.
        if (chart.current === made)
          (isWhy ? onWhy : onZoom)({ fromMs: from * 1000, toMs: to * 1000 })
      },
    })
    chart.current = made
    const observer = new ResizeObserver(() =>
      made.setSize({ width: element.clientWidth, height: HEIGHT }),
    )
    observer.observe(element)
    return () => {
      observer.disconnect()
      made.destroy()
      element.replaceChildren()
      chart.current = null
    }
  }, [histogram, shownTheme.value, zone.value])

  useEffect(() => {
    const made = chart.current
    if (made === null) return
    // uPlot lays out a new chart in a microtask, which it has queued before this one.
    queueMicrotask(() => {
      const { clientWidth, clientHeight } = made.over
      const [left = 0, right = 0] = (brush === null ? spanOf(why ?? '') : brushedSpan(brush)).map(
        (ms) => Math.max(0, Math.min(clientWidth, made.valToPos(ms / 1000, 'x'))),
      )
      // Keeps the edges visible at any width.
      const height = right > left ? clientHeight : 0
      made.setSelect({ left, width: right - left, top: 0, height }, false)
    })
    if (brush !== null) setHovered(brush.to)
  }, [brush, why, histogram, shownTheme.value, zone.value])

  const onPointerDown = (): void => {
    brushed.current = histogram
    const end = (): void => {
      brushed.current = null
      redraw((n) => n + 1)
    }
    // Runs after the chart has handled the event.
    addEventListener('pointerup', () => setTimeout(end), { once: true })
  }
  const endBrush = (): void => {
    setBrush(null)
    setHovered(null)
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? 0
    if (move !== 0) {
      const to = Math.max(0, Math.min(buckets.length - 1, (brush?.to ?? buckets.length) + move))
      setBrush({ from: event.shiftKey ? (brush?.from ?? to) : to, to })
    } else if (event.key === 'Enter' && brush !== null) {
      const [fromMs, toMs] = brushedSpan(brush)
      ;(event.shiftKey ? onWhy : onZoom)({ fromMs, toMs })
      endBrush()
    } else if (event.key === 'Escape' && brush !== null) {
      endBrush()
    } else return
    event.preventDefault()
    event.stopPropagation()
  }
  return (
    <div
      class="histogram"
      tabIndex={0}
      role="application"
      aria-label={`Histogram of ${counted(histogram.total, 'occurrence')}. Arrow keys move, with Shift they select, Enter zooms, Shift and Enter explain.`}
      onKeyDown={onKeyDown}
      onPointerDown={onPointerDown}
    >
      <div ref={root} class="chart" />
      {(usual.bars.length > 0 || usual.anomalies.length > 0) && (
        <UsualBand histogram={histogram} usual={usual} />
      )}
      {hovered !== null && (
        <Tip histogram={histogram} at={hovered} chart={chart.current} usual={usual} />
      )}
    </div>
  )
}

/** The bars between two that were selected with the keyboard. */
interface Brush {
  readonly from: number
  readonly to: number
}

const spanOf = (span: string): readonly number[] =>
  span
    .split('..')
    .map((end) => Date.parse(end))
    .filter(Number.isFinite)

interface TipProps {
  readonly histogram: Histogram
  readonly at: number
  readonly chart: uPlot | null
  readonly usual: UsualReply
}

function Tip({ histogram, at, chart, usual }: TipProps) {
  const bucket = histogram.buckets[at]
  if (bucket === undefined || chart === null) return null
  const ms = Date.parse(bucket.t)
  const left = chart.valToPos(ms / 1000 + histogram.step_s / 2, 'x')
  const isRight = left > chart.over.clientWidth / 2
  const expected = usual.bars.find(({ t }) => Date.parse(t) === ms)
  const names = orderOf(histogram).filter((name) => partOf(bucket, name) > 0)
  const colors = colorsOf(histogram)
  return (
    <div
      class={`tip ${isRight ? 'left' : ''}`}
      style={{ left: `${left + chart.over.offsetLeft}px` }}
    >
      <strong>
        {shortTime(ms, zone.value).split(',')[0]} {clock(ms, zone.value)}
      </strong>
      {names.toReversed().map((name) => (
        <span key={name}>
          <i style={{ background: colors.get(name) ?? '' }} />
          {partName(name, histogram.by)} <b>{count(partOf(bucket, name))}</b>
        </span>
      ))}
      {names.length !== 1 && (
        <span class="sum">
          total <b>{count(bucket.total)}</b>
        </span>
      )}
      {expected !== undefined && (
        <span class="sum">
          usual{' '}
          <b>
            {short(Math.floor(expected.low))} to {short(Math.ceil(expected.high))}
          </b>
        </span>
      )}
    </div>
  )
}

interface Handlers {
  readonly onHover: (index: number | null) => void
  readonly onSelect: (fromS: number, toS: number, isWhy: boolean) => void
}

function draw(root: HTMLElement, histogram: Histogram, { onHover, onSelect }: Handlers): uPlot {
  const ink = resolved(root)
  const start = Date.parse(histogram.start) / 1000
  const end = Math.max(Date.parse(histogram.end) / 1000, start + 1)
  const step = histogram.step_s
  const axis = {
    stroke: ink('--muted'),
    font: '11px system-ui, sans-serif',
    ticks: { show: false },
  }
  const options: uPlot.Options = {
    width: root.clientWidth,
    height: HEIGHT,
    padding: [8, 22, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
    scales: {
      x: { range: () => [start, end] },
      y: { range: (_, _min, max) => [0, max * 1.05 || 1] },
    },
    // The bars are drawn by the page, because stacked series of uPlot have edges in each other's colours.
    series: [{}, { paths: () => null, points: { show: false } }],
    axes: [
      {
        ...axis,
        size: 22,
        gap: 2,
        space: 90,
        grid: { show: false },
        // A label at the left edge would cover the 0 of the other axis and is left out; one at the
        // right edge has no space for its date.
        values: (plot, ticks) =>
          labels(ticks).map((text, i) => {
            const [x, right] = [plot.valToPos(ticks[i] ?? 0, 'x'), plot.valToPos(end, 'x')]
            return x < 14 ? '' : right - x < 14 ? (text.split(' ').at(-1) ?? '') : text
          }),
      },
      {
        ...axis,
        size: 46,
        gap: 4,
        space: 28,
        grid: { stroke: ink('--line'), width: 1 },
        values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? short(tick) : '')),
      },
    ],
    hooks: {
      drawAxes: [(plot) => drawBars(plot, histogram, ink)],
      setCursor: [
        ({ cursor: { left = -1 }, posToVal }) => {
          const at = left < 0 ? -1 : Math.floor((posToVal(left, 'x') - first) / step)
          onHover(at >= 0 && at < histogram.buckets.length ? at : null)
        },
      ],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select
          if (width < 4) return
          onSelect(
            plot.posToVal(left, 'x'),
            plot.posToVal(left + width, 'x'),
            plot.cursor.event?.shiftKey === true,
          )
        },
      ],
    },
  }
  const first = Date.parse(histogram.buckets[0]?.t ?? histogram.start) / 1000
  const heights = histogram.buckets.map(({ total }) => total)
  const times = histogram.buckets.map(({ t }) => Date.parse(t) / 1000)
  return new uPlot(options, [times, heights], root)
}

function drawBars(plot: uPlot, histogram: Histogram, ink: (token: string) => string): void {
  const { ctx, bbox } = plot
  const fills = [...colorsOf(histogram)].map(([name, token]) => ({ name, fill: ink(token) }))
  ctx.save()
  ctx.beginPath()
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height)
  ctx.clip()
  for (const bucket of histogram.buckets) {
    const start = Date.parse(bucket.t) / 1000
    const from = plot.valToPos(start, 'x', true)
    const until = plot.valToPos(start + histogram.step_s, 'x', true)
    const left = Math.round(from)
    // All bars have a gap or none, because with rounded widths only some would.
    const width = Math.max(1, Math.round(until) - left - (until - from > 4 ? 1 : 0))
    let below = 0
    for (const { name, fill } of fills) {
      const part = partOf(bucket, name)
      if (part === 0) continue
      const bottom = Math.round(plot.valToPos(below, 'y', true))
      below += part
      // A few errors among many messages are visible too.
      const top = Math.min(Math.round(plot.valToPos(below, 'y', true)), bottom - 1)
      ctx.fillStyle = fill
      ctx.fillRect(left, top, width, bottom - top)
    }
  }
  ctx.restore()
}

/** The labels of a time axis, with the date where it changes. */
function labels(ticks: readonly number[]): string[] {
  let before = ''
  const isFine = (ticks[1] ?? 0) - (ticks[0] ?? 0) < 60
  return ticks.map((tick) => {
    const [date = '', minute = ''] = shortTime(tick * 1000, zone.value).split(', ')
    const text = isFine ? clock(tick * 1000, zone.value) : minute
    const isNew = before !== '' && date !== before
    before = date
    return isNew ? `${date} ${text}` : text
  })
}

/** Resolves tokens of the style sheet to colours for the canvas in the current theme. */
function resolved(root: HTMLElement): (token: string) => string {
  const probe = document.createElement('span')
  probe.hidden = true
  root.append(probe)
  const style = getComputedStyle(probe)
  return (token) => {
    probe.style.color = token.startsWith('--') ? `var(${token})` : token
    return style.color
  }
}
