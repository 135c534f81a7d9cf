import { useEffect, useState } from 'preact/hooks'

import { parseMatchers, printMatchers, type Matcher } from '../../query/matcher-line.js'
import { Named } from '../explore/named.js'
import { call } from '../lib/api.js'
import { counted } from '../lib/format.js'
import { useLoad } from '../lib/load.js'
import type { Paged } from '../lib/paged.js'
import { learnPeople, personName } from '../lib/people.js'
import { place } from '../lib/router.js'
import { may } from '../lib/session.js'
import { zone } from '../lib/settings.js'
import { shortTime } from '../lib/time.js'
import { FormDialog } from '../shell/form-dialog.js'
import { MoreButton } from '../shell/more-button.js'
import { Problem } from '../shell/problem.js'
import { ConfirmButton } from '../shell/confirm-button.js'
import { When } from '../shell/when.js'
import type { Rule } from './alert-answers.js'

export const HOW_TO =
  'field=value or field!=value, with commas between; * stands for any characters, but not in "quotes"'

export interface Silence {
  readonly id: string
  readonly matchers: readonly Matcher[]
  readonly reason: string
  readonly starts_at: string
  readonly ends_at: string
  readonly state: 'pending' | 'active' | 'expired'
  /** The user; empty for the service. */
  readonly updated_by: string
}

interface SilenceTableProps {
  readonly list: Paged<Silence>
  readonly onEdit: (silence: Silence) => void
  readonly onChange: (work: Promise<unknown>, said: string) => void
}

/** The silences, and who made them. */
export function SilenceTable({ list, onEdit, onChange }: SilenceTableProps) {
  useEffect(learnPeople, [])
  const rules = useLoad('rules', (signal) =>
    call<{ readonly items: readonly Rule[] }>('/api/alert-rules?limit=200', { signal }),
  )
  if (list.error !== null) return <Problem of={list} />
  if (list.items === null) return null
  if (list.items.length === 0)
    return <p class="note">None. Alerts still fire during a silence, but nobody is notified.</p>
  /** The id of a rule is replaced by its name. */
  const withName = ({ field, op, value }: Matcher): Matcher => {
    const rule = field === 'rule_id' ? rules.value?.items.find(({ id }) => id === value) : undefined
    return rule === undefined
      ? { field, op: op ?? '=', value }
      : { field: 'rule', op: op ?? '=', value: rule.name }
  }
  return (
    <div class="table-room bare">
      <table>
        <thead>
          <tr>
            <th>Alerts with</th>
            <th>Why</th>
            <th>By</th>
            <th>From</th>
            <th>To</th>
            <th>State</th>
            <th>
              <span class="vh">Change, end</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {list.items.map((one) => (
            <tr key={one.id}>
              <td class="long">
                <code title={printMatchers(one.matchers)}>
                  <Named text={printMatchers(one.matchers.map(withName))} />
                </code>
              </td>
              <td class="long">{one.reason}</td>
              <td>{one.updated_by === '' ? 'the service' : personName(one.updated_by)}</td>
              <td>
                <When at={one.starts_at} />
              </td>
              <td>
                <When at={one.ends_at} />
              </td>
              <td>{one.state}</td>
              <td class="number">
                {may('manager') && <Tools silence={one} onEdit={onEdit} onChange={onChange} />}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <MoreButton list={list} />
    </div>
  )
}

interface ToolsProps extends Pick<SilenceTableProps, 'onEdit' | 'onChange'> {
  readonly silence: Silence
}

function Tools({ silence, onEdit, onChange }: ToolsProps) {
  const { id, matchers, reason, starts_at } = silence
  const path = `/api/silences/${id}`
  const change = (
    <button class="quiet" onClick={() => onEdit(silence)}>
      Change
    </button>
  )
  if (silence.state === 'active')
    return (
      <>
        {change}
        <ConfirmButton
          label="End …"
          sure="End it: notices of firing alerts are sent"
          onSure={() => {
            const json = { matchers, reason, starts_at, ends_at: 'now' }
            onChange(call(path, { method: 'PUT', json }), 'It is over.')
          }}
        />
      </>
    )
  return (
    <>
      {silence.state === 'pending' && change}
      <ConfirmButton
        label="Delete …"
        sure="Delete the silence"
        onSure={() => onChange(call(path, { method: 'DELETE' }), 'It is deleted.')}
      />
    </>
  )
}

/** The durations of a silence. */
const ENDS = [
  ['now+1h', 'an hour'],
  ['now+2h', 'two hours'],
  ['now+8h', 'eight hours'],
  ['now+1d', 'a day'],
  ['now+7d', 'a week'],
] as const

interface SilenceFormProps {
  /** Null for a new one. */
  readonly silence: Silence | null
  /** The matchers of a new silence. */
  readonly matchers: string
  readonly onClose: () => void
  readonly onSaved: () => void
}

export function SilenceForm({ silence, matchers: given, onClose, onSaved }: SilenceFormProps) {
  const [text, setText] = useState(silence === null ? given : printMatchers(silence.matchers))
  const matchers = parseMatchers(text)
  const isNew = silence === null
  const ends = isNew ? (place.value.params.get('for') ?? 'now+2h') : silence.ends_at
  const submit = (field: (name: string) => string): Promise<unknown> => {
    const json = {
      matchers,
      reason: field('reason'),
      ends_at: field('ends'),
      ...(isNew ? {} : { starts_at: silence.starts_at }),
    }
    const path = isNew ? '/api/silences' : `/api/silences/${silence.id}`
    return call(path, { method: isNew ? 'POST' : 'PUT', json }).then(onSaved)
  }
  return (
    <FormDialog
      title={isNew ? 'Silence' : 'Change the silence'}
      action={isNew ? 'Silence them' : 'Save'}
      isReady={matchers !== null}
      onClose={onClose}
      onSubmit={submit}
    >
      <label class="field">
        Alerts with
        <input
          class="mono"
          value={text}
          required
          autofocus
          spellcheck={false}
          placeholder="such as source=checkout"
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </label>
      <p class="note">{HOW_TO}</p>
      {matchers !== null && <Preview matchers={matchers} />}
      <label class="field">
        {isNew ? 'For' : 'Ends'}
        <select name="ends">
          {!isNew && (
            <option value={silence.ends_at}>
              as before, {shortTime(Date.parse(silence.ends_at), zone.value)}
            </option>
          )}
          {ENDS.map(([value, name]) => (
            <option key={value} value={value} selected={value === ends}>
              {isNew ? name : `${name} from now`}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        Why (required)
        <input name="reason" required maxLength={500} defaultValue={silence?.reason ?? ''} />
      </label>
    </FormDialog>
  )
}

interface PreviewReply {
  readonly firing: number
  readonly last_day: number
}

/** The alerts that a silence would hold back. */
function Preview({ matchers }: { readonly matchers: readonly Matcher[] }) {
  const loaded = useLoad(`silence ${JSON.stringify(matchers)}`, (signal) =>
    call<PreviewReply>('/api/silences/preview', { method: 'POST', json: { matchers }, signal }),
  )
  const { value } = loaded
  if (loaded.error !== null) return <Problem of={loaded} />
  return (
    <p role="status">
      {value === null
        ? ' '
        : `Matches ${counted(value.firing, 'alert')} that ${value.firing === 1 ? 'fires' : 'fire'} now, and ${value.last_day} of the last 24 hours.`}
    </p>
  )
}
