import { useEffect, useMemo, useRef, useState } from 'preact/hooks'

import { ApiError, messageOf, type Fault } from '../lib/api.js'
import { Icon } from '../lib/icon.js'
import type { Binding } from '../lib/keys.js'
import { lazy } from '../lib/lazy.js'
import type { Loaded } from '../lib/load.js'
import { without } from '../lib/query-edit.js'
import { askCounts, rowSource, type Run } from './answers.js'
import type { Correction } from './correction.js'
import { EventList } from './event-list.js'
import { Rows, type Row } from './rows.js'
import { learnTemplates, templateText } from './templates-known.js'
import type { FirstPaint } from './first-paint.js'
import type { PressedVariable } from './variable-menu.js'

const NothingFound = lazy(async () => (await import('../later.js')).NothingFound)
const VariableMenu = lazy(async () => (await import('../later.js')).VariableMenu)
const TableHead = lazy(async () => (await import('../later.js')).TableHead)

interface FoundProps {
  readonly run: Run
  readonly runKey: string
  /** Ended when the first rows are painted. */
  readonly firstPaint: FirstPaint
  readonly columns: readonly string[]
  /** Removes a column; null when the columns have no headers. */
  readonly onColumn: ((name: string) => void) | null
  readonly openId: number | null
  readonly onOpen: (id: number) => void
  readonly onTab: (tab: 'context') => void
  readonly onLine: (line: string) => void
  readonly onRetry: () => void
  readonly onIncident: (row: Row) => void
  readonly correction: Correction
}

interface State {
  readonly rows: Rows | null
  readonly error: unknown
}

/** The rows of a query. The previous ones stay until the new ones are loaded. */
function useRows(run: Run, key: string, firstPaint: FirstPaint): State {
  const [state, setState] = useState<State>({ rows: null, error: null })
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    const rows: Rows = new Rows(rowSource(run, signal), () => {
      if (!signal.aborted) setState({ rows, error: rows.error })
    })
    rows.show(0, 60)
    // Without counts, one page of rows is read after the other.
    firstPaint.wait
      .then(() => askCounts(run, signal))
      .then(
        (counted) => rows.count(counted),
        () => undefined,
      )
    return () => controller.abort()
  }, [key])
  // An effect runs after its rows are painted.
  useEffect(() => {
    if (state.rows !== null) firstPaint.end()
  }, [state.rows])
  return state
}

/** The matching events, or what replaces them. */
export function Found(props: FoundProps) {
  const { run, runKey, firstPaint, openId, onOpen, onLine, onTab, correction } = props
  const { rows, error } = useRows(run, runKey, firstPaint)
  const [current, setCurrent] = useState(-1)
  const [variable, setVariable] = useState<PressedVariable | null>(null)
  const next = useRef(-1)
  useEffect(() => {
    setCurrent(next.current)
    next.current = -1
  }, [runKey])
  correction.onCorrected.current = (row) => rows?.replace(row)
  const opened = useRef(openId)
  opened.current = openId
  const withDay = useMemo(() => run.span.toMs - run.span.fromMs > 20 * 3_600_000, [run])

  if (error !== null && (rows === null || rows.total === 0))
    return <Failed error={error} reload={props.onRetry} />
  if (rows === null) return <div class="found waiting" aria-busy="true" />
  if (rows.total === 0) return <NothingFound run={run} onLine={onLine} />

  const keys = (row: Row | undefined): readonly Binding[] => {
    const withId = (act: (id: number) => void) => () => {
      const id = openId ?? row?.id
      if (id !== undefined) act(id)
    }
    return [
      ...([1, 2, 3, 4] as const).map((n) => ({
        key: String(n),
        label: `set the priority P${n}`,
        run: withId((id) => correction.correct({ id }, `P${n}`)),
      })),
      {
        key: 'c',
        label: 'context of the event',
        run: withId((id) => {
          onOpen(id)
          onTab('context')
        }),
      },
      {
        key: 'm',
        label: 'mute the template of the event',
        run: () => {
          if (row === undefined) return
          const { id, template_id: muted } = row
          const place = rows.placeOf(id)
          const gone = rows.between(0, place).filter((one) => one.template_id === muted)
          // The event at the same position becomes the current one.
          next.current = place - gone.length
          onLine(without(run.line, 'template', muted))
        },
      },
      {
        key: 'y',
        label: 'copy the message',
        run: () =>
          row !== undefined &&
          void import('../later.js').then(({ copyMessage }) => copyMessage(row)),
      },
      {
        key: 'e',
        label: 'export all events as NDJSON',
        run: () =>
          void import('../later.js').then(({ exportRun }) =>
            exportRun(run, 'ndjson', rows.counted),
          ),
      },
      {
        key: 'i',
        label: 'open an incident from the event',
        run: () => row !== undefined && props.onIncident(row),
      },
      {
        key: 'L',
        label: 'copy a link with absolute times',
        run: () => void import('../later.js').then(({ copyLink }) => copyLink(run)),
      },
    ]
  }
  return (
    <section class="found" aria-label="Events">
      {error !== null && <Failed error={error} reload={props.onRetry} />}
      {props.onColumn !== null && (
        <TableHead columns={props.columns} withDay={withDay} onColumn={props.onColumn} />
      )}
      <EventList
        label="Events"
        total={rows.total}
        at={(index) => rows.at(index)}
        columns={props.columns}
        templateOf={templateText}
        withDay={withDay}
        current={current === -1 && openId !== null ? rows.placeOf(openId) : current}
        openId={openId}
        onCurrent={setCurrent}
        onOpen={({ id }) => onOpen(id)}
        onVariable={setVariable}
        onRange={(first, last) => {
          rows.show(first, last)
          learnTemplates(rows.between(first, last).map((row) => row.template_id))
        }}
        keys={keys}
      />
      {variable !== null && (
        <VariableMenu
          pressed={variable}
          line={run.line}
          onLine={onLine}
          onOpen={() => onOpen(variable.row.id)}
          onClose={() => setVariable(null)}
        />
      )}
    </section>
  )
}

/** The fault in the query line. */
export const faultOf = (error: unknown): Fault | null =>
  error instanceof ApiError ? (error.faults.find(({ path }) => path === 'q') ?? null) : null

/** The error that replaces a result, the rows or the chart. */
export function Failed({ error, reload }: Pick<Loaded<unknown>, 'error' | 'reload'>) {
  const isOfLine = faultOf(error) !== null
  return (
    <div class="found empty" role="alert">
      <Icon name="circle-alert" size={22} />
      <h2>{isOfLine ? 'The query can’t be read' : 'No answer'}</h2>
      <p>{messageOf(error)}</p>
      {!isOfLine && (
        <button class="primary" onClick={reload}>
          Try again
        </button>
      )}
    </div>
  )
}
