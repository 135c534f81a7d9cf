import type { ComponentChildren, HTMLAttributes } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

/**
 * The greatest height of a list. Browsers cannot place elements below some 16 to 33 million pixels,
 * so a longer list is scaled down to this.
 */
const MOST_PIXELS = 8_000_000
/** The extra rows above and below the visible ones. */
const SPARE = 8

/** Scrolls a list from outside. */
export interface ListHandle {
  show(index: number): void
  toEnd(): void
  readonly isAtEnd: () => boolean
}

interface VirtualListProps {
  readonly count: number
  readonly rowHeight: number
  readonly row: (index: number) => ComponentChildren
  /** Called with the range of visible rows, the last one exclusive. */
  readonly onRange?: (first: number, last: number) => void
  readonly onScroll?: (top: number) => void
  readonly handle?: { current: ListHandle | null }
  readonly attributes?: HTMLAttributes<HTMLDivElement>
}

/** A scrolling list that renders only the visible rows. Its scroll bar is exact for any number of rows. */
export function VirtualList({ count, rowHeight, row, onRange, ...rest }: VirtualListProps) {
  const view = useRef<HTMLDivElement>(null)
  const [size, setSize] = useState(600)
  /** The scroll position in pixels of the full list, and of the scroll bar. */
  const [at, setAt] = useState({ top: 0, bar: 0 })
  const full = count * rowHeight
  const height = Math.min(full, MOST_PIXELS)

  useLayoutEffect(() => {
    const element = view.current
    if (element === null) return
    const observer = new ResizeObserver(() => setSize(element.clientHeight))
    observer.observe(element)
    setSize(element.clientHeight)
    return () => observer.disconnect()
  }, [])

  const onScroll = (): void => {
    const bar = view.current?.scrollTop ?? 0
    setAt((before) => ({ bar, top: topOf({ before, bar, full, height, size }) }))
    rest.onScroll?.(bar)
  }
  if (rest.handle !== undefined)
    rest.handle.current = {
      isAtEnd: () => {
        const element = view.current
        if (element === null) return true
        return element.scrollTop + element.clientHeight > element.scrollHeight - rowHeight
      },
      toEnd: () => {
        if (view.current !== null) view.current.scrollTop = view.current.scrollHeight
      },
      show: (index) => {
        const element = view.current
        if (element === null) return
        const target = scrollFor(index * rowHeight, { at, size, rowHeight })
        if (target === null) return
        const top = Math.max(0, Math.min(target, full - size))
        const bar = full <= MOST_PIXELS ? top : (top / (full - size)) * (height - size)
        setAt({ top, bar: Math.round(bar) })
        element.scrollTop = Math.round(bar)
      },
    }

  const first = Math.max(0, Math.floor(at.top / rowHeight) - SPARE)
  const last = Math.min(count, Math.ceil((at.top + size) / rowHeight) + SPARE)
  useLayoutEffect(() => onRange?.(first, last))
  const drawn = Array.from({ length: Math.max(0, last - first) }, (_, i) => first + i)
  return (
    <div {...rest.attributes} ref={view} onScroll={onScroll}>
      <div style={{ height: `${height}px`, position: 'relative' }} role="presentation">
        <div
          role="presentation"
          style={{
            position: 'absolute',
            insetInline: 0,
            transform: `translateY(${at.bar + first * rowHeight - at.top}px)`,
          }}
        >
          {drawn.map(row)}
        </div>
      </div>
    </div>
  )
}

interface Scroll {
  readonly before: { readonly top: number; readonly bar: number }
  readonly bar: number
  readonly full: number
  readonly height: number
  readonly size: number
}

/** The wheel moves a scaled list row by row; the scroll bar moves it proportionally. */
function topOf({ before, bar, full, height, size }: Scroll): number {
  if (full <= MOST_PIXELS) return bar
  if (bar <= 0) return 0
  if (bar >= height - size) return full - size
  const step = bar - before.bar
  const isSmall = Math.abs(step) < size * 2
  const top = isSmall ? before.top + step : (bar / (height - size)) * (full - size)
  return Math.max(0, Math.min(top, full - size))
}

interface View {
  readonly at: { readonly top: number }
  readonly size: number
  readonly rowHeight: number
}

/** @returns null when the row is visible already */
function scrollFor(y: number, { at, size, rowHeight }: View): number | null {
  if (y < at.top) return y - size * 0.2
  if (y + rowHeight > at.top + size) return y - size * 0.8
  return null
}
