import { useRef, useState } from 'preact/hooks'

import { count } from '../lib/format.js'
import { useKeys, type Binding } from '../lib/keys.js'
import { oneLine, pieces } from '../lib/message.js'
import { density, wrapping, zone } from '../lib/settings.js'
import { VirtualList, type ListHandle } from '../lib/virtual-list.js'
import { EventRow, MOST_OF_VALUE, rowHeight, tracksOf } from './event-row.js'
import type { Row } from './rows.js'
import type { PressedVariable } from './variable-menu.js'

type Place = Pick<PressedVariable, 'x' | 'y'>

interface EventListProps {
  readonly total: number
  readonly at: (index: number) => Row | undefined
  readonly columns: readonly string[]
  readonly templateOf: (id: string) => string
  readonly withDay: boolean
  readonly current: number
  readonly openId: number | null
  readonly onCurrent: (index: number) => void
  readonly onOpen: (row: Row) => void
  readonly onVariable: (pressed: PressedVariable) => void
  readonly onRange: (first: number, last: number) => void
  /** Further keys for the row that is current. */
  readonly keys: (row: Row | undefined) => readonly Binding[]
  readonly label: string
  readonly isFresh?: boolean
}

/** The variable of the current row that was selected with the keyboard; -1 for none. */
function useVariable(row: Row | undefined, { columns, templateOf }: EventListProps) {
  const [chosen, setChosen] = useState({ id: 0, variable: -1 })
  const variable = chosen.id === row?.id ? chosen.variable : -1
  const moveVariable = (step: number) => () => {
    if (row === undefined || !columns.includes('message')) return
    const parts = pieces(oneLine(row.message), templateOf(row.template_id))
    const last = parts.filter(({ isVariable }) => isVariable).length - 1
    setChosen({ id: row.id, variable: Math.max(-1, Math.min(last, variable + step)) })
  }
  return { variable, moveVariable }
}

/** The matching events, one a line, with the keys for the current one. */
export function EventList(props: EventListProps) {
  const { total, at, current, openId, onCurrent, onOpen, columns } = props
  const list = useRef<ListHandle | null>(null)
  const goTo = (index: number): void => {
    const next = Math.max(0, Math.min(total - 1, index))
    onCurrent(next)
    list.current?.show(next)
    const row = at(next)
    if (openId !== null && row !== undefined) onOpen(row)
  }
  const row = at(current)
  const move = (step: number) => () => goTo(current + step)
  const { variable, moveVariable } = useVariable(row, props)
  const press = (pressed: Row, target: Element | null, point?: Place): void => {
    const text = target?.textContent ?? ''
    const { left, bottom } = target?.getBoundingClientRect() ?? { left: 0, bottom: 0 }
    if (text === '' || text.length > MOST_OF_VALUE) return onOpen(pressed)
    props.onVariable({ row: pressed, text, ...(point ?? { x: left, y: bottom - 8 }) })
  }
  useKeys('Events', [
    { key: 'j', label: 'next event', run: move(1) },
    { key: 'k', label: 'previous event', run: move(-1) },
    { key: 'ArrowDown', label: 'next event', run: move(1) },
    { key: 'ArrowUp', label: 'previous event', run: move(-1) },
    { key: 'PageDown', label: 'a page further', run: move(20) },
    { key: 'PageUp', label: 'a page back', run: move(-20) },
    { key: 'Home', label: 'first event', run: () => goTo(0) },
    { key: 'End', label: 'last event', run: () => goTo(total - 1) },
    { key: 'ArrowRight', label: 'next variable of the message', run: moveVariable(1) },
    { key: 'ArrowLeft', label: 'variable before it', run: moveVariable(-1) },
    {
      key: 'Enter',
      label: 'open the event, or the menu of the variable',
      run: () =>
        row !== undefined && press(row, document.getElementById(`row-${current}-variable`)),
    },
    { key: 'w', label: 'wrap lines', run: toggleWrap },
    ...props.keys(row),
  ])
  const onClick = ({ target, clientX: x, clientY: y }: MouseEvent): void => {
    // Selecting text is not a click.
    if (getSelection()?.type === 'Range') return
    const element = target instanceof Element ? target.closest<HTMLElement>('[data-index]') : null
    if (element === null) return
    const index = Number(element.dataset['index'])
    const pressed = at(index)
    onCurrent(index)
    if (pressed === undefined) return
    press(pressed, target instanceof Element ? target.closest('.message i') : null, { x, y })
  }
  const height = rowHeight()
  const tracks = tracksOf(columns)
  return (
    <VirtualList
      count={total}
      rowHeight={height}
      handle={list}
      onRange={props.onRange}
      row={(index) => {
        const shown = at(index)
        if (shown === undefined) return <Waiting key={`w${index}`} index={index} />
        return (
          <EventRow
            key={shown.id}
            row={shown}
            index={index}
            columns={columns}
            template={props.templateOf(shown.template_id)}
            isCurrent={index === current}
            isOpen={shown.id === openId}
            variable={index === current ? variable : -1}
            withDay={props.withDay}
            zone={zone.value}
            idPrefix="row"
          />
        )
      }}
      attributes={{
        class: `events with-menu ${wrapping.value === 'on' ? 'wrap' : ''} ${density.value}`,
        style: `--columns: ${tracks}; --row: ${height}px; --time-width: ${props.withDay ? '9.4rem' : '6.2rem'}`,
        tabIndex: 0,
        role: 'grid',
        'aria-label': `${props.label}: ${count(total)}`,
        'aria-rowcount': total,
        'aria-activedescendant':
          row === undefined ? undefined : `row-${current}${variable === -1 ? '' : '-variable'}`,
        onClick,
      }}
    />
  )
}

export function toggleWrap(): void {
  wrapping.value = wrapping.value === 'on' ? 'off' : 'on'
}

const Waiting = ({ index }: { readonly index: number }) => (
  <div class="row waiting" role="row" aria-rowindex={index + 1}>
    <span role="gridcell" class="cell" style={{ width: `${30 + ((index * 37) % 50)}%` }} />
  </div>
)
