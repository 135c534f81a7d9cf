import { useState } from 'preact/hooks'

import { parseQuery } from '../../query/parser.js'
import { ApiError, call, messageOf } from '../lib/api.js'
import { useLoad } from '../lib/load.js'
import { may } from '../lib/session.js'
import { notice } from '../shell/notice.js'
import { PriorityChoice } from '../shell/priority-choice.js'
import { channelKind, type Channel, type Fields } from './alert-answers.js'
import { KindFields, KINDS, startOf } from './kind-fields.js'
import { MoreFields } from './more-fields.js'
import { Problem } from '../shell/problem.js'

interface RuleFormProps {
  readonly fields: Fields
  /** Called with the fields at each change, so that the chart follows. */
  readonly onChange: (fields: Fields) => void
  /** Rejects with the service's error. */
  readonly onSave: (fields: Fields) => Promise<void>
}

export function RuleForm({ fields, onChange, onSave }: RuleFormProps) {
  const [problem, setProblem] = useState('')
  const [isBusy, setBusy] = useState(false)
  const set = (patch: Partial<Fields>): void => onChange({ ...fields, ...patch })
  const fault = parseQuery(fields.q ?? '').fault
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    setBusy(true)
    onSave(fields)
      .then(
        () => {
          setProblem('')
          notice('The rule is saved.')
        },
        (error: unknown) => {
          const [first] = error instanceof ApiError ? error.faults : []
          setProblem(`${first?.path === undefined ? '' : `${first.path}: `}${messageOf(error)}`)
        },
      )
      .finally(() => setBusy(false))
  }
  return (
    <form class="card form" onSubmit={submit}>
      <label class="field">
        Name
        <input
          value={fields.name}
          required
          maxLength={120}
          onInput={({ currentTarget: { value } }) => set({ name: value })}
        />
      </label>
      <PriorityChoice chosen={fields.severity} onChoose={(severity) => set({ severity })} />
      <label class="field">
        Search
        <input
          class="mono"
          value={fields.q ?? ''}
          spellcheck={false}
          placeholder="every event"
          onInput={({ currentTarget: { value } }) => set({ q: value })}
        />
      </label>
      {fault !== null && <p class="problem">{fault.message}</p>}
      <label class="field">
        Fires when
        <select
          value={fields.kind.type}
          onChange={({ currentTarget: { value } }) => set({ kind: startOf(value) })}
        >
          {Object.entries(KINDS).map(([type, name]) => (
            <option key={type} value={type}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <KindFields kind={fields.kind} onChange={(kind) => set({ kind })} />
      <ChannelChoice fields={fields} onChange={onChange} />
      <MoreFields fields={fields} onChange={onChange} />
      {problem !== '' && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {may('manager') ? (
        <button class="primary" disabled={isBusy}>
          Save
        </button>
      ) : (
        <p class="note">You may try it out here; saving needs the role manager.</p>
      )}
    </form>
  )
}

function ChannelChoice({ fields, onChange }: Pick<RuleFormProps, 'fields' | 'onChange'>) {
  const loaded = useLoad(may('manager') ? 'channels' : null, (signal) =>
    call<{ readonly items: readonly Channel[] }>('/api/notification-channels?limit=200', {
      signal,
    }),
  )
  // Only managers may read channels.
  if (!may('manager')) return null
  if (loaded.value === null) return <Problem of={loaded} />
  const channels = loaded.value.items
  if (channels.length === 0)
    return (
      <p class="note">
        It only shows here: there is no <a href="/alerts/channels">channel</a> that tells others.
      </p>
    )
  const chosen = fields.notify?.channels ?? []
  const toggle = (id: string): void => {
    const next = chosen.includes(id) ? chosen.filter((one) => one !== id) : [...chosen, id]
    const { notify, ...rest } = fields
    onChange(next.length === 0 ? rest : { ...rest, notify: { ...notify, channels: next } })
  }
  return (
    <fieldset class="channels">
      <legend class="note">Tells</legend>
      {channels.map((channel) => (
        <label key={channel.id}>
          <input
            type="checkbox"
            checked={chosen.includes(channel.id)}
            onChange={() => toggle(channel.id)}
          />{' '}
          {channel.name} <span class="note">{channelKind(channel.type)}</span>
        </label>
      ))}
    </fieldset>
  )
}
