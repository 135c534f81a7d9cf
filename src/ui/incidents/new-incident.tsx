import { useState } from 'preact/hooks'

import { act } from '../lib/act.js'
import { count } from '../lib/format.js'
import { usePaged } from '../lib/paged.js'
import { go } from '../lib/router.js'
import { zone } from '../lib/settings.js'
import { rangeLabel } from '../lib/time.js'
import { Dialog } from '../shell/dialog.js'
import { formTexts } from '../shell/form.js'
import { draft } from '../shell/open-dialogs.js'
import { addEvidence, openIncident, type IncidentFacts } from './incident-answers.js'

const PRIORITIES = ['P1', 'P2', 'P3', 'P4'] as const

/** Opens an incident with what was found, or adds it to one that is open. */
export function NewIncident() {
  const given = draft.value
  const [severity, setSeverity] = useState(given?.severity ?? 'P2')
  const open = usePaged<IncidentFacts>('/api/incidents', {
    status: 'open,acknowledged,investigating',
    limit: 20,
  })
  const close = (): void => {
    draft.value = null
  }
  if (given === null) return null
  const done = (work: Promise<IncidentFacts>, said: string): void => {
    void act(work, said).then((made) => {
      if (made === null) return
      close()
      go(`/incidents/${made.value.id}`)
    })
  }
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    const text = formTexts(event.currentTarget)
    const fields = { title: text('title'), description: text('description'), severity }
    done(openIncident({ ...given, ...fields }), 'The incident is open.')
  }
  const hasEvidence = given.evidence.length + given.event_ids.length > 0
  return (
    <Dialog title="New incident" onClose={close}>
      <form class="form" onSubmit={submit}>
        <label class="field">
          Title
          <input name="title" value={given.title} required maxLength={300} autofocus />
        </label>
        <span class="segments" role="group" aria-label="Priority">
          {PRIORITIES.map((priority) => (
            <button
              key={priority}
              type="button"
              class={priority.toLowerCase()}
              aria-pressed={severity === priority}
              onClick={() => setSeverity(priority)}
            >
              {priority}
            </button>
          ))}
        </span>
        <label class="field">
          Description
          <textarea name="description" rows={3} />
        </label>
        {given.evidence.map((one) => (
          <p class="note" key={one.q}>
            Evidence: <code>{one.q === '' ? 'all events' : one.q}</code>,{' '}
            {rangeLabel(one, zone.value, Date.now())}, {count(one.count)} occurrences
          </p>
        ))}
        <p class="line">
          <button class="primary">Open the incident</button>
          <button type="button" class="quiet" onClick={close}>
            Cancel
          </button>
        </p>
        {hasEvidence && (open.items ?? []).length > 0 && (
          <>
            <h3>Or add it to one that is open</h3>
            <ul class="choices">
              {(open.items ?? []).slice(0, 6).map((one) => (
                <li key={one.id}>
                  <button
                    type="button"
                    class="item"
                    onClick={() => done(addEvidence(one, given), 'The evidence is added.')}
                  >
                    <span class={`badge ${one.severity.toLowerCase()}`}>{one.severity}</span>
                    {one.title}
                  </button>
                </li>
              ))}
            </ul>
          </>
        )}
      </form>
    </Dialog>
  )
}
