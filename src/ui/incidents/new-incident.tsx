import { useState } from 'preact/hooks'

import { act } from '../lib/act.js'
import { count } from '../lib/format.js'
import { usePaged } from '../lib/paged.js'
import { go } from '../lib/router.js'
import { zone } from '../lib/settings.js'
import { rangeLabel } from '../lib/time.js'
import { FormDialog } from '../shell/form-dialog.js'
import { MoreButton } from '../shell/more-button.js'
import { draft } from '../shell/open-dialogs.js'
import { PriorityChoice } from '../shell/priority-choice.js'
import { addEvidence, openIncident, type IncidentFacts } from './incident-answers.js'
import { Named } from '../explore/named.js'

/** Opens an incident with evidence, or adds the evidence to an open one. */
export function NewIncident() {
  const given = draft.value
  const [severity, setSeverity] = useState(given?.severity ?? 'P2')
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
  const submit = (text: (name: string) => string): string => {
    const fields = { title: text('title'), description: text('description'), severity }
    done(openIncident({ ...given, ...fields }), 'The incident is open.')
    return ''
  }
  return (
    <FormDialog
      title="New incident"
      action="Open the incident"
      onClose={close}
      onSubmit={submit}
      instead={
        <OpenOnes
          given={given}
          onAdd={(one) => done(addEvidence(one, given), 'The evidence is added.')}
        />
      }
    >
      <label class="field">
        Title
        <input name="title" defaultValue={given.title} required maxLength={300} autofocus />
      </label>
      <PriorityChoice chosen={severity} onChoose={setSeverity} />
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
    </FormDialog>
  )
}

interface OpenOnesProps {
  readonly given: NonNullable<typeof draft.value>
  readonly onAdd: (incident: IncidentFacts) => void
}

/** The incidents that the evidence can be added to. */
function OpenOnes({ given, onAdd }: OpenOnesProps) {
  const open = usePaged<IncidentFacts>('/api/incidents', {
    status: 'open,acknowledged,investigating',
    limit: 6,
  })
  const hasEvidence = given.evidence.length + given.event_ids.length > 0
  if (!hasEvidence || (open.items ?? []).length === 0) return null
  return (
    <>
      <h3>Or add it to one that is open</h3>
      <ul class="choices">
        {(open.items ?? []).map((one) => (
          <li key={one.id}>
            <button type="button" class="item" onClick={() => onAdd(one)}>
              <span class={`badge ${one.severity.toLowerCase()}`}>{one.severity}</span>
              <Named text={one.title} />
            </button>
          </li>
        ))}
      </ul>
      <MoreButton list={open} />
    </>
  )
}
