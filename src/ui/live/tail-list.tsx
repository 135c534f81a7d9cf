import { useEffect, useRef, useState } from 'preact/hooks'

import { EventRow, rowHeight, tracksOf } from '../explore/event-row.js'
import { learnTemplates, templateText } from '../explore/templates-known.js'
import { count } from '../lib/format.js'
import { useKeys } from '../lib/keys.js'
import { density, wrapping, zone } from '../lib/settings.js'
import { VirtualList, type ListHandle } from '../lib/virtual-list.js'
import type { TailBuffer, TailItem } from './tail-buffer.js'

interface TailListProps {
  readonly buffer: TailBuffer
  readonly columns: readonly string[]
  readonly marks: readonly string[]
  readonly openId: number | null
  readonly onOpen: (id: number) => void
  readonly onPause: () => void
  readonly onResume: () => void
}

/** The list of the tail, with the newest events at the end. It follows the end unless the user has scrolled up. */
export function TailList(props: TailListProps) {
  const { buffer, columns, marks, openId, onOpen, onPause, onResume } = props
  const list = useRef<ListHandle | null>(null)
  const wasAt = useRef(0)
  const { items, isPaused } = buffer
  useEffect(() => {
    if (!isPaused) list.current?.toEnd()
  }, [items, isPaused])
  useEffect(() => {
    const onSelect = (): void => {
      if (getSelection()?.type === 'Range') onPause()
    }
    document.addEventListener('selectionchange', onSelect)
    return () => document.removeEventListener('selectionchange', onSelect)
  })
  const onScroll = (top: number): void => {
    const isUp = top < wasAt.current - 2
    wasAt.current = top
    if (isUp && !isPaused) onPause()
    else if (!isUp && isPaused && openId === null && list.current?.isAtEnd() === true) onResume()
  }
  const [current, setCurrent] = useState(0)
  const at =
    current === 0 ? -1 : items.findIndex((item) => item.kind === 'event' && item.row.id === current)
  const move = (step: number) => () => {
    onPause()
    const by = at === -1 ? -1 : step
    let next = (at === -1 ? items.length : at) + by
    while (items[next]?.kind === 'gap') next += by
    const item = items[next]
    if (item?.kind !== 'event') return
    setCurrent(item.row.id)
    list.current?.show(next)
    if (openId !== null) onOpen(item.row.id)
  }
  useKeys('Newest events', [
    { key: 'j', label: 'next event', run: move(1) },
    { key: 'k', label: 'previous event', run: move(-1) },
    { key: 'ArrowDown', label: 'next event', run: move(1) },
    { key: 'ArrowUp', label: 'previous event', run: move(-1) },
    { key: 'Enter', label: 'open the event', run: () => at !== -1 && onOpen(current) },
  ])
  const onClick = ({ target }: MouseEvent): void => {
    if (getSelection()?.type === 'Range') return
    const element = target instanceof Element ? target.closest<HTMLElement>('[data-index]') : null
    const item = element === null ? undefined : items[Number(element.dataset['index'])]
    if (item?.kind === 'event') onOpen(item.row.id)
  }
  return (
    <section class="found" aria-label="Events">
      <VirtualList
        count={items.length}
        rowHeight={rowHeight()}
        handle={list}
        onScroll={onScroll}
        onRange={(first, last) => learnTemplates(idsOf(items.slice(first, last)))}
        row={(index) => {
          const item = items[index]
          if (item === undefined) return null
          if (item.kind === 'gap')
            return (
              <div key={item.key} class="row gap" role="row">
                <span role="gridcell">
                  {count(item.count)} events {item.text}
                </span>
              </div>
            )
          const { row } = item
          return (
            <EventRow
              key={item.key}
              row={row}
              index={index}
              columns={columns}
              template={templateText(row.template_id)}
              marks={marks}
              isCurrent={row.id === current}
              isOpen={row.id === openId}
              withDay={false}
              zone={zone.value}
              idPrefix="tail"
            />
          )
        }}
        attributes={{
          class: `events ${wrapping.value === 'on' ? 'wrap' : ''} ${density.value}`,
          style: `--columns: ${tracksOf(columns)}; --row: ${rowHeight()}px; --time-width: 6.2rem`,
          tabIndex: 0,
          role: 'grid',
          'aria-label': 'Newest events, oldest first',
          'aria-rowcount': items.length,
          'aria-activedescendant': at === -1 ? undefined : `tail-${at}`,
          onClick,
        }}
      />
    </section>
  )
}

const idsOf = (items: readonly TailItem[]): readonly string[] =>
  items.flatMap((item) => (item.kind === 'event' ? [item.row.template_id] : []))
