import { useEffect, useState } from 'preact/hooks'

import { act } from '../lib/act.js'
import { call, pathWith } from '../lib/api.js'
import { count, counted } from '../lib/format.js'
import { Icon } from '../lib/icon.js'
import { useLoad } from '../lib/load.js'
import { oneLine } from '../lib/message.js'
import { learnPeople, people, personName } from '../lib/people.js'
import { may, user } from '../lib/session.js'
import { zone } from '../lib/settings.js'
import { takeFocus } from '../lib/take-focus.js'
import { duration, rangeLabel } from '../lib/time.js'
import { formTexts } from '../shell/form.js'
import { PriorityChoice } from '../shell/priority-choice.js'
import { TopBar } from '../shell/top-bar.js'
import { When } from '../shell/when.js'
import { MOVES, NEXT, transition, type Incident } from './incident-answers.js'
import { Problem } from '../shell/problem.js'
import { Named, named } from '../explore/named.js'

/** The most events that are shown of an incident. */
const MOST_EVENTS = 50
const MOST_OF_MESSAGE = 300

/** The page of one incident: its status, evidence and timeline. */
export function IncidentScreen({ id }: { readonly id: string }) {
  const [changed, setChanged] = useState<Incident | null>(null)
  const loaded = useLoad(`incident ${id}`, (signal) =>
    call<Incident>(`/api/incidents/${id}`, { signal }),
  )
  useEffect(learnPeople, [])
  const incident = changed?.id === id ? changed : loaded.value
  const title = incident === null ? 'Incident' : `${named(incident.title)} · Incident`
  useEffect(() => {
    document.title = title
  }, [title])
  const change = async (json: object): Promise<boolean> => {
    const done = await act(call<Incident>(`/api/incidents/${id}`, { method: 'PATCH', json }), '')
    if (done !== null) setChanged(done.value)
    return done !== null
  }
  return (
    <main class="screen incident">
      <TopBar title="Incident" />
      <div class="scroll">
        <a class="back" href="/incidents">
          <Icon name="chevron-left" size={14} /> Incidents
        </a>
        <Problem of={loaded} what="incident" />
        {incident !== null && (
          <>
            <Head incident={incident} onChange={change} onMoved={setChanged} />
            <div class="panels two">
              <Timeline incident={incident} onChanged={setChanged} />
              <div class="stack">
                <Description incident={incident} onChange={change} />
                <EvidenceList incident={incident} onChange={change} />
              </div>
            </div>
          </>
        )}
      </div>
    </main>
  )
}

interface PartProps {
  readonly incident: Incident
  /** Resolves to whether the change was made. */
  readonly onChange: (json: object) => Promise<boolean>
}

interface HeadProps extends PartProps {
  readonly onMoved: (incident: Incident) => void
}

function Head({ incident, onChange, onMoved }: HeadProps) {
  const { id, severity, status, assignee_id: assignee } = incident
  const isManager = may('manager')
  return (
    <header class="incident-head">
      <h2>
        <Named text={incident.title} />
      </h2>
      <div class="line">
        <PriorityChoice
          chosen={severity}
          isSmall
          isDisabled={!isManager}
          onChoose={(priority) => void onChange({ severity: priority })}
        />
        <span class={`state ${status}`}>{status}</span>
        <Assignee incident={incident} onChange={onChange} />
        <span class="note">
          opened <When at={incident.created_at} /> by {personName(incident.created_by)}
          {incident.resolved_at !== null &&
            `, resolved after ${duration(Date.parse(incident.resolved_at) - Date.parse(incident.created_at))}`}
        </span>
      </div>
      {isManager && (
        <div class="line">
          {NEXT[status].map((to, i) => (
            <button
              key={to}
              class={i === 0 ? 'primary' : ''}
              onClick={() =>
                void act(transition(id, to), '').then(
                  (done) => done !== null && onMoved(done.value),
                )
              }
            >
              {MOVES[to]}
            </button>
          ))}
          {assignee !== user.value?.id && (
            <button onClick={() => void onChange({ assignee_id: user.value?.id })}>Take it</button>
          )}
        </div>
      )}
    </header>
  )
}

function Assignee({ incident, onChange }: PartProps) {
  const { assignee_id: id } = incident
  if (!may('admin') || people.value.length === 0)
    return <span>{id === null ? 'nobody has it' : personName(id)}</span>
  return (
    <select
      aria-label="Who has it"
      value={id ?? ''}
      onChange={({ currentTarget: { value } }) =>
        void onChange({ assignee_id: value === '' ? null : value })
      }
    >
      <option value="">nobody has it</option>
      {people.value.map((one) => (
        <option key={one.id} value={one.id}>
          {one.email}
        </option>
      ))}
    </select>
  )
}

interface TimelineProps {
  readonly incident: Incident
  readonly onChanged: (incident: Incident) => void
}

const KINDS = { created: 'opened it', changed: 'changed ', transition: '', note: '' } as const

/** Names of fields as words: `assignee_id, event_ids` is "assignee, events". */
const namesOf = (fields: string): string =>
  fields.replaceAll(/_id(?=s?\b)/g, '').replaceAll('_', ' ')

function Timeline({ incident, onChanged }: TimelineProps) {
  const [isBusy, setBusy] = useState(false)
  const add = (event: SubmitEvent): void => {
    event.preventDefault()
    const form = event.currentTarget
    const text = formTexts(form)('text')
    if (text === '') return
    const path = `/api/incidents/${incident.id}/notes`
    setBusy(true)
    void act(call<Incident>(path, { method: 'POST', json: { text } }), '').then((done) => {
      setBusy(false)
      if (done === null) return
      onChanged(done.value)
      if (form instanceof HTMLFormElement) form.reset()
    })
  }
  return (
    <section class="card">
      <h2>Timeline</h2>
      <ol class="timeline">
        {incident.timeline.map((entry, i) => (
          <li key={i} class={`entry-${entry.kind}`}>
            <p class="note">
              <When at={entry.at} /> {personName(entry.actor_id)}
            </p>
            <p>
              {KINDS[entry.kind]}
              {entry.kind === 'changed' ? namesOf(entry.text) : entry.text}
            </p>
          </li>
        ))}
      </ol>
      {may('manager') && (
        <form class="note-form" onSubmit={add}>
          <textarea
            name="text"
            rows={2}
            aria-label="Note"
            placeholder="What was seen, what was done"
          />
          <button disabled={isBusy}>Add note</button>
        </form>
      )}
    </section>
  )
}

function Description({ incident, onChange }: PartProps) {
  /** Null until Edit is clicked for the first time; only after that the button takes the focus back. */
  const [isEdited, setEdited] = useState<boolean | null>(null)
  const save = (event: SubmitEvent): void => {
    event.preventDefault()
    const text = formTexts(event.currentTarget)
    void onChange({ title: text('title'), description: text('description') }).then((isDone) => {
      if (isDone) setEdited(false)
    })
  }
  if (isEdited === true)
    return (
      <form class="card form" onSubmit={save}>
        <label class="field">
          Title
          <input name="title" defaultValue={incident.title} required maxLength={300} />
        </label>
        <label class="field">
          Description
          <textarea
            ref={takeFocus}
            name="description"
            rows={5}
            defaultValue={incident.description}
          />
        </label>
        <p class="line">
          <button class="primary">Save</button>
          <button type="button" class="quiet" onClick={() => setEdited(false)}>
            Cancel
          </button>
        </p>
      </form>
    )
  return (
    <section class="card">
      <h2>What happened</h2>
      {incident.description === '' ? (
        <p class="note">Nobody has written it yet.</p>
      ) : (
        <p class="text">{incident.description}</p>
      )}
      {may('manager') && (
        <button
          ref={isEdited === false ? takeFocus : null}
          class="link"
          onClick={() => setEdited(true)}
        >
          Edit
        </button>
      )}
    </section>
  )
}

function EvidenceList({ incident, onChange }: PartProps) {
  const { evidence, event_ids: events, source } = incident
  const ids = events.slice(0, MOST_EVENTS).join()
  const known = useLoad(ids === '' ? null : `events ${ids}`, (signal) =>
    call<{ readonly items: readonly ShownEvent[] }>(
      pathWith('/api/logs', {
        q: `id:${ids}`,
        start_time: '1970-01-01T00:00:00Z',
        limit: MOST_EVENTS,
        message_cut: MOST_OF_MESSAGE,
        fields: 'id,timestamp,severity,source,message',
      }),
      { signal },
    ),
  )
  return (
    <section class="card">
      <h2>Evidence</h2>
      {evidence.length + events.length === 0 && (
        <p class="note">
          None yet. The flame of an event in Explore, or the key <kbd>i</kbd>, adds the event and
          the search.
        </p>
      )}
      <ul class="evidence">
        {evidence.map((one, i) => (
          <li key={i}>
            <a href={pathWith('/explore', { q: one.q, from: one.from, to: one.to })}>
              <code>{one.q === '' ? 'all events' : <Named text={one.q} />}</code>
              <span class="note">{rangeLabel(one, zone.value, Date.now())}</span>
            </a>
            <b title="occurrences, as they were then">{count(one.count)}</b>
            {may('manager') && (
              <button
                class="quiet tiny"
                aria-label={`Take away ${one.q}`}
                title="Take it away"
                onClick={() => void onChange({ evidence: evidence.filter((_, at) => at !== i) })}
              >
                <Icon name="x" size={13} />
              </button>
            )}
          </li>
        ))}
        {events.slice(0, MOST_EVENTS).map((id) => (
          <li key={id}>
            <a href={`/events/${id}`}>
              <EvidenceEvent id={id} event={known.value?.items.find((one) => one.id === id)} />
            </a>
          </li>
        ))}
      </ul>
      {events.length > MOST_EVENTS && (
        <p class="note">and {counted(events.length - MOST_EVENTS, 'more event')}</p>
      )}
      {source !== null && <p class="note">Source: {source}</p>}
    </section>
  )
}

interface ShownEvent {
  readonly id: number
  readonly timestamp: string
  readonly severity: string
  readonly source: string
  readonly message: string
}

interface EvidenceEventProps {
  readonly id: number
  /** The stored event; absent before it is loaded, and when it was deleted. */
  readonly event: ShownEvent | undefined
}

function EvidenceEvent({ id, event }: EvidenceEventProps) {
  if (event === undefined) return <>event {id}</>
  return (
    <>
      <code>{oneLine(event.message, MOST_OF_MESSAGE)}</code>
      <span class="note">
        {event.severity} · {event.source} · <When at={event.timestamp} />
      </span>
    </>
  )
}
