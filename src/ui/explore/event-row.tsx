import { memo } from './memo.js'
import { density, wrapping } from '../lib/settings.js'
import { oneLine, pieces } from '../lib/message.js'
import { tagOf } from '../lib/tags.js'
import { day, preciseClock } from '../lib/time.js'
import type { Row } from './rows.js'

/** The longest value that can be added to the query. */
export const MOST_OF_VALUE = 200

/** Columns that every event has; any other name is an attribute. */
export const COLUMNS = [
  'time',
  'severity',
  'source',
  'host',
  'priority',
  'environment',
  'type',
  'trace',
  'message',
] as const
export const DEFAULT_COLUMNS = ['time', 'source', 'host', 'message'] as const
export const JSON_COLUMNS = ['JSON'] as const

const WIDTHS: ReadonlyMap<string, string> = new Map([
  ['time', 'var(--time-width)'],
  ['message', 'minmax(0, 1fr)'],
  ['JSON', 'minmax(0, 1fr)'],
  ['severity', '4.6rem'],
  ['priority', '4rem'],
  ['type', '3.6rem'],
])

/** The columns of the list as CSS grid tracks. */
export const tracksOf = (columns: readonly string[]): string =>
  columns.map((name) => WIDTHS.get(name) ?? 'minmax(3rem, 8rem)').join(' ')

export function rowHeight(): number {
  if (wrapping.value === 'on') return density.value === 'compact' ? 60 : 66
  return density.value === 'compact' ? 24 : 30
}

function cellText(row: Row, column: string): string {
  switch (column) {
    case 'JSON':
      return oneLine(JSON.stringify(row))
    case 'severity':
      return row.severity
    case 'source':
      return row.source
    case 'host':
      return row.host
    case 'priority':
      return row.priority
    case 'environment':
      return row.environment
    case 'type':
      return row.type
    case 'trace':
      return row.trace_id
    default:
      return tagOf(row.tags, column)
  }
}

interface EventRowProps {
  readonly row: Row
  readonly index: number
  readonly columns: readonly string[]
  readonly template: string
  /** Words that are highlighted. */
  readonly marks?: readonly string[]
  readonly isCurrent: boolean
  readonly isOpen: boolean
  /** The index of the variable that was selected with the keyboard; -1 for none. */
  readonly variable?: number
  /** Whether the rows are of several days. */
  readonly withDay: boolean
  readonly zone: string
  readonly idPrefix: string
}

/** An event on a line. The list handles its clicks. */
export const EventRow = memo((props: EventRowProps) => {
  const { row, index, columns, isCurrent, isOpen, idPrefix } = props
  return (
    <div
      class={`row ${row.severity.toLowerCase()}`}
      id={`${idPrefix}-${index}`}
      role="row"
      aria-rowindex={index + 1}
      aria-selected={isOpen}
      data-index={index}
      data-current={isCurrent ? '' : undefined}
    >
      {columns.map((column) => (
        <Cell key={column} column={column} {...props} />
      ))}
    </div>
  )
})

function Cell({
  row,
  column,
  template,
  index,
  marks = [],
  variable = -1,
  withDay,
  zone: at,
  idPrefix,
}: EventRowProps & { readonly column: string }) {
  if (column === 'time') {
    const ms = Date.parse(row.timestamp)
    return (
      <time role="gridcell" class="cell time" dateTime={row.timestamp}>
        {withDay && <span class="day">{day(ms, at)} </span>}
        {preciseClock(ms, at)}
      </time>
    )
  }
  if (column === 'message') {
    const parts = pieces(oneLine(row.message), template)
    const chosen = parts.filter(({ isVariable }) => isVariable)[variable]
    return (
      <span role="gridcell" class="cell message">
        {row.occurrence_count > 1 && <b class="times">×{row.occurrence_count}</b>}
        <span class="vh">{row.severity} </span>
        {parts.map(({ text, isVariable }, i) =>
          isVariable ? (
            <i
              key={i}
              {...(parts[i] === chosen && { id: `${idPrefix}-${index}-variable`, role: 'button' })}
            >
              {marked(text, marks)}
            </i>
          ) : (
            marked(text, marks)
          ),
        )}
      </span>
    )
  }
  const text = cellText(row, column)
  return (
    <span
      role="gridcell"
      class={`cell ${column === 'priority' ? text.toLowerCase() : 'plain'}`}
      title={text}
    >
      {text}
    </span>
  )
}

/** A text with some of its words highlighted, in any case. */
function marked(text: string, words: readonly string[]) {
  if (words.length === 0) return text
  const pattern = new RegExp(`(${words.map(escaped).join('|')})`, 'i')
  return text.split(pattern).map((piece, i) => (i % 2 === 1 ? <mark key={i}>{piece}</mark> : piece))
}

const escaped = (word: string): string => word.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
