import { useEffect, useMemo, useRef, useState } from 'preact/hooks'

import { call, pathWith } from '../lib/api.js'
import { Icon } from '../lib/icon.js'
import { useKeys } from '../lib/keys.js'
import { useLoad } from '../lib/load.js'
import { hasLine, only, stateOf, toggled, without } from '../lib/query-edit.js'
import { zone } from '../lib/settings.js'
import { may } from '../lib/session.js'
import { flatten } from '../lib/tags.js'
import { ago, fullTime } from '../lib/time.js'
import { copy } from '../shell/notice.js'
import { ContextView } from './context.js'
import { copyMessage } from './copy-message.js'
import { Priority } from './priority.js'
import type { Detail } from './rows.js'
import { TraceView } from './trace.js'
import { Variables } from './variables.js'
import { PriorityChoice } from '../shell/priority-choice.js'
import { Problem } from '../shell/problem.js'

const TABS = ['fields', 'context', 'trace', 'why', 'json'] as const
export type Tab = (typeof TABS)[number]

const TAB_NAMES = {
  fields: 'Fields',
  context: 'Context',
  trace: 'Trace',
  why: 'Why this priority',
  json: 'JSON',
}

interface DetailProps {
  readonly id: number
  readonly line: string
  readonly tab: Tab
  /** Changes when the event is corrected. */
  readonly revision: number
  readonly onTab: (tab: Tab) => void
  readonly onLine: (line: string) => void
  readonly onClose: () => void
  readonly onOpen: (id: number) => void
  readonly onCorrect: (detail: Detail, priority: Detail['priority']) => void
  /** Absent in a live tail, which has no time range as evidence. */
  readonly onIncident?: (event: Detail) => void
}

/** The details of one event, beside the list. */
export function DetailPanel(props: DetailProps) {
  const { id, tab, onClose, revision } = props
  const [wholeId, setWholeId] = useState(0)
  const isWhole = wholeId === id
  const loaded = useLoad(`event ${id} ${revision} ${isWhole}`, (signal) =>
    call<Detail>(pathWith(`/api/logs/${id}`, isWhole ? {} : { message_cut: LONG }), { signal }),
  )
  useKeys('Event', [{ key: 'Escape', label: 'close the event', run: onClose }])
  const event = loaded.value?.id === id || loaded.isLoading ? loaded.value : null
  return (
    <aside class="detail" aria-label="Event">
      <h2 class="vh">Event</h2>
      <header>
        {event === null ? <Problem of={loaded} what="event" /> : <Head {...props} event={event} />}
        <button class="quiet square" aria-label="Close" title="Close (Esc)" onClick={onClose}>
          <Icon name="x" />
        </button>
      </header>
      {event === null && loaded.error === null && <div class="found waiting" />}
      {event !== null && (
        <>
          <Message
            event={event}
            isWhole={isWhole}
            onWhole={(shows) => setWholeId(shows ? id : 0)}
          />
          <div class="tabs" role="tablist" aria-label="Of the event">
            {TABS.filter((name) => name !== 'trace' || event.trace_id !== '').map((name) => (
              <button
                key={name}
                role="tab"
                id={`tab-${name}`}
                aria-selected={name === tab}
                aria-controls="tab-panel"
                onClick={() => props.onTab(name)}
              >
                {TAB_NAMES[name]}
              </button>
            ))}
          </div>
          <div
            class="tab-panel"
            role="tabpanel"
            id="tab-panel"
            aria-labelledby={`tab-${tab}`}
            tabIndex={0}
          >
            <TabPanel {...props} event={event} />
          </div>
        </>
      )}
    </aside>
  )
}

function TabPanel({ event, tab, ...props }: DetailProps & { readonly event: Detail }) {
  switch (tab) {
    case 'fields':
      return <FieldTable event={event} line={props.line} onLine={props.onLine} />
    case 'context':
      return <ContextView event={event} onOpen={props.onOpen} />
    case 'trace':
      return <TraceView event={event} onOpen={props.onOpen} />
    case 'why':
      return <Priority event={event} onCorrect={props.onCorrect} />
    case 'json':
      return <Json id={event.id} revision={props.revision} />
  }
}

interface HeadProps extends Pick<DetailProps, 'onCorrect' | 'onIncident'> {
  readonly event: Detail
}

function Head({ event, onCorrect, onIncident }: HeadProps) {
  const ms = Date.parse(event.timestamp)
  return (
    <div class="head">
      <span class={`badge ${event.severity.toLowerCase()}`}>{event.severity}</span>
      <PriorityChoice
        chosen={event.priority}
        isSmall
        isDisabled={!may('manager')}
        what="for this event and later ones of its template"
        onChoose={(priority) => onCorrect(event, priority)}
      />
      {onIncident !== undefined && may('manager') && (
        <button
          class="quiet square"
          aria-label="Open an incident"
          title="Open an incident (i)"
          onClick={() => onIncident(event)}
        >
          <Icon name="flame" size={14} />
        </button>
      )}
      <time dateTime={event.timestamp}>
        {fullTime(ms, zone.value)} ({ago(ms, Date.now())})
      </time>
    </div>
  )
}

/** Characters of a message that are shown at first. The layout of one word of this length takes half of a frame (8 ms). */
const LONG = 2000

interface MessageProps {
  readonly event: Detail
  readonly isWhole: boolean
  readonly onWhole: (isWhole: boolean) => void
}

function Message({ event, isWhole, onWhole }: MessageProps) {
  const { message } = event
  return (
    <div class="full-message">
      <pre tabIndex={0} aria-label="Message">
        {message}
      </pre>
      <div class="actions">
        {message.length > LONG && (
          <button class="link" onClick={() => onWhole(!isWhole)}>
            {isWhole ? 'Show less' : 'Show the whole message'}
          </button>
        )}
        <button
          class="quiet tiny"
          aria-label="Copy the message"
          title="Copy the message"
          onClick={() => void copyMessage(event)}
        >
          <Icon name="copy" size={13} />
        </button>
      </div>
    </div>
  )
}

interface FieldTableProps {
  readonly event: Detail
  readonly line: string
  readonly onLine: (line: string) => void
}

/** The fields of an event by their names in the query language. */
function rowsOf(event: Detail): readonly (readonly [name: string, value: string])[] {
  const own: readonly (readonly [string, string])[] = [
    ['source', event.source],
    ['host', event.host],
    ['application', event.application ?? ''],
    ['environment', event.environment],
    ['type', event.type],
    ['template', event.template_id],
    ['trace', event.trace_id],
    ['span', event.span_id],
    ['count', String(event.occurrence_count)],
    ['id', String(event.id)],
  ]
  return own.filter(([, value]) => value !== '')
}

function FieldTable({ event, line, onLine }: FieldTableProps) {
  return (
    <>
      {event.summary !== '' && event.summary !== event.message && (
        <p class="summary">{event.summary}</p>
      )}
      <FieldRows rows={rowsOf(event)} line={line} onLine={onLine} />
      <Variables event={event} line={line} onLine={onLine} />
      <Attributes key={event.id} event={event} line={line} onLine={onLine} />
    </>
  )
}

/** The attributes that are drawn in one frame, and in all at first. */
const STEP = 8
const MOST_ATTRIBUTES = 1000

/** The attributes of an event. More are drawn when the end of the list becomes visible. */
function Attributes({ event, line, onLine }: FieldTableProps) {
  const all = useMemo(() => flatten(event.tags, MOST_ATTRIBUTES), [event])
  const [drawn, setDrawn] = useState(STEP)
  const end = useRef<HTMLDivElement>(null)
  const isWhole = drawn >= all.length
  useEffect(() => {
    if (isWhole || end.current === null) return
    const observer = new IntersectionObserver((seen) => {
      if (seen.some(({ isIntersecting }) => isIntersecting)) setDrawn(drawn + STEP)
    })
    observer.observe(end.current)
    return () => observer.disconnect()
  }, [drawn, isWhole])
  if (all.length === 0) return null
  return (
    <>
      <h3>Attributes</h3>
      <FieldRows rows={all.slice(0, drawn)} areAttributes line={line} onLine={onLine} />
      <div ref={end} />
      {isWhole && all.length === MOST_ATTRIBUTES && (
        <p class="note">These are the first {MOST_ATTRIBUTES}; the tab JSON has all.</p>
      )}
    </>
  )
}

interface FieldRowsProps {
  readonly rows: readonly (readonly [name: string, value: string])[]
  /** Whether they are attributes; other fields are in nearly every event. */
  readonly areAttributes?: boolean
  readonly line: string
  readonly onLine: (line: string) => void
}

/** The longest value that can be added to the query. */
const MOST_ASKED = 500

function FieldRows({ rows, areAttributes = false, line, onLine }: FieldRowsProps) {
  return (
    <dl class="field-rows">
      {rows.map(([name, value]) => {
        const state = stateOf(line, name, value)
        return (
          <div key={name} class={state}>
            <dt title={name}>{name}</dt>
            <dd>
              <span>{value.length > LONG ? `${value.slice(0, LONG)}…` : value}</span>
              <span class="tools">
                {areAttributes && (
                  <button
                    class="quiet tiny"
                    aria-label={`Events with ${name}`}
                    title="Only events that have it"
                    onClick={() => onLine(toggled(line, hasLine(name)))}
                  >
                    <Icon name="list-filter" size={13} />
                  </button>
                )}
                {value.length <= MOST_ASKED && (
                  <>
                    <button
                      class="quiet tiny"
                      aria-label={`Only ${name} ${value}`}
                      title="Only events with this"
                      aria-pressed={state === 'only'}
                      onClick={() => onLine(only(line, name, value))}
                    >
                      <Icon name="plus" size={13} />
                    </button>
                    <button
                      class="quiet tiny"
                      aria-label={`Without ${name} ${value}`}
                      title="Without events with this"
                      aria-pressed={state === 'not'}
                      onClick={() => onLine(without(line, name, value))}
                    >
                      <Icon name="minus" size={13} />
                    </button>
                  </>
                )}
                <button
                  class="quiet tiny"
                  aria-label={`Copy ${name}`}
                  title="Copy"
                  onClick={() => void copy(value, `${name} is copied.`)}
                >
                  <Icon name="copy" size={13} />
                </button>
              </span>
            </dd>
          </div>
        )
      })}
    </dl>
  )
}

/** All of the event, its whole message included. */
function Json({ id, revision }: { readonly id: number; readonly revision: number }) {
  const loaded = useLoad(`JSON ${id} ${revision}`, (signal) =>
    call<Detail>(`/api/logs/${id}`, { signal }),
  )
  const { value } = loaded
  if (loaded.error !== null) return <Problem of={loaded} />
  if (value === null) return <div class="found waiting" aria-busy="true" />
  const text = JSON.stringify(value, null, 2)
  return (
    <div class="json">
      <button class="quiet" onClick={() => void copy(text, 'The event is copied as JSON.')}>
        <Icon name="copy" size={14} /> Copy
      </button>
      <pre>{text.length > 200_000 ? `${text.slice(0, 200_000)}…` : text}</pre>
    </div>
  )
}
