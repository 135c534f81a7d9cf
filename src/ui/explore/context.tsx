import { useEffect, useRef } from 'preact/hooks'

import { call, pathWith } from '../lib/api.js'
import { useLoad } from '../lib/load.js'
import { oneLine } from '../lib/message.js'
import { zone } from '../lib/settings.js'
import { preciseClock } from '../lib/time.js'
import type { Detail, Row } from './rows.js'
import { Problem } from '../shell/problem.js'

interface ContextReply {
  readonly before: { readonly items: readonly Row[] }
  readonly after: { readonly items: readonly Row[] }
}

const EACH = 20
const MOST_SHOWN = 400

interface ContextProps {
  readonly event: Detail
  readonly onOpen: (id: number) => void
}

/** The events of the same source around an event, oldest first as in a log file. */
export function ContextView({ event, onOpen }: ContextProps) {
  const same = event.host === '' ? 'source' : 'source,host'
  const loaded = useLoad(`context ${event.id}`, (signal) =>
    call<ContextReply>(
      pathWith(`/api/logs/${event.id}/context`, {
        before: EACH,
        after: EACH,
        same,
        message_cut: MOST_SHOWN,
      }),
      { signal },
    ),
  )
  const { value } = loaded
  const list = useRef<HTMLOListElement>(null)
  useEffect(
    () => list.current?.querySelector('[aria-current="true"]')?.scrollIntoView({ block: 'center' }),
    [value],
  )
  if (loaded.error !== null) return <Problem of={loaded} />
  if (value === null) return <div class="found waiting" aria-busy="true" />
  const byTime = (items: readonly Row[]): readonly Row[] =>
    items.toSorted((a, b) => a.timestamp.localeCompare(b.timestamp) || a.id - b.id)
  return (
    <>
      <p class="note">
        {event.source}
        {event.host !== '' && ` on ${event.host}`}, oldest first
      </p>
      <ol class="context" ref={list}>
        {byTime(value.before.items).map((row) => (
          <Line key={row.id} row={row} onOpen={onOpen} />
        ))}
        <Line row={event} onOpen={onOpen} isCurrent />
        {byTime(value.after.items).map((row) => (
          <Line key={row.id} row={row} onOpen={onOpen} />
        ))}
      </ol>
    </>
  )
}

interface LineProps {
  readonly row: Row
  readonly onOpen: (id: number) => void
  readonly isCurrent?: boolean
}

const Line = ({ row, onOpen, isCurrent = false }: LineProps) => (
  <li class={row.severity.toLowerCase()} aria-current={isCurrent}>
    <button onClick={() => onOpen(row.id)} disabled={isCurrent}>
      <time dateTime={row.timestamp}>{preciseClock(Date.parse(row.timestamp), zone.value)}</time>
      <span>{oneLine(row.message, MOST_SHOWN)}</span>
    </button>
  </li>
)
