import { useEffect, useState } from 'preact/hooks'

import { act } from '../lib/act.js'
import { call } from '../lib/api.js'
import { learnPeople, personName } from '../lib/people.js'
import { may } from '../lib/session.js'
import { formTexts } from '../shell/form.js'
import { When } from '../shell/when.js'

interface Signed {
  readonly actor_id: string
  readonly at: string
}

export interface Note extends Signed {
  readonly text: string
}

export interface Correction extends Signed {
  readonly event_id: number
  readonly priority: string
  readonly reason: string
}

const By = ({ actor_id: id, at }: Signed) => (
  <span class="note">
    {personName(id)}, <When at={at} />
  </span>
)

interface NoteOfProps {
  readonly id: string
  readonly note: Note | null
}

/** The note of users on a template. */
export function NoteOf({ id, note: given }: NoteOfProps) {
  const [note, setNote] = useState(given)
  useEffect(() => setNote(given), [given])
  useEffect(learnPeople, [])
  const save = (event: SubmitEvent): void => {
    event.preventDefault()
    const json = { text: formTexts(event.currentTarget)('text') }
    const path = `/api/logs/meta/templates/${encodeURIComponent(id)}/note`
    const work = call<{ readonly note: Note | null }>(path, { method: 'PUT', json })
    void act(work, 'The note is saved.').then((done) => done !== null && setNote(done.value.note))
  }
  return (
    <section class="card">
      <h2>Note</h2>
      {may('manager') ? (
        <form class="note-form" onSubmit={save}>
          <textarea
            name="text"
            rows={3}
            maxLength={4000}
            aria-label="Note"
            placeholder="What it means, and what to do"
            defaultValue={note?.text ?? ''}
          />
          <button>Save note</button>
        </form>
      ) : (
        <p>{note?.text ?? <span class="note">None.</span>}</p>
      )}
      {note !== null && <By {...note} />}
    </section>
  )
}

export const Corrections = ({ all }: { readonly all: readonly Correction[] }) =>
  all.length === 0 ? null : (
    <section class="card wide">
      <h2>Corrected priorities</h2>
      <ol class="corrected">
        {all.map((one) => (
          <li key={`${one.at} ${one.event_id}`}>
            <a href={`/events/${one.event_id}`}>
              <span class={`badge ${one.priority.toLowerCase()}`}>{one.priority}</span>
            </a>{' '}
            {one.reason} <By {...one} />
          </li>
        ))}
      </ol>
    </section>
  )
