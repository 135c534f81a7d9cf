import { useState } from 'preact/hooks'

import type { Fields } from './alert-answers.js'
import { Text } from './text-field.js'

interface MoreFieldsProps {
  readonly fields: Fields
  readonly onChange: (fields: Fields) => void
}

type Notify = NonNullable<Fields['notify']>

const PLACEHOLDERS = { group_wait: '10s', group_interval: '5m', repeat: '4h' } as const
const LABELS = {
  group_wait: 'The first message waits',
  group_interval: 'Between two messages',
  repeat: 'Repeated after, or never',
} as const satisfies Partial<Record<keyof Notify, string>>
type Time = keyof typeof LABELS
const TIMES: readonly Time[] = ['group_wait', 'group_interval', 'repeat']

type TextName = 'owner' | 'runbook' | 'note' | 'for' | 'keep_firing_for' | 'every' | 'max_age'
const FOLDED = ['group_by', 'n_of_m', 'opens', 'time'] as const
const TEXTS = {
  for: { label: 'Only after', placeholder: '0s' },
  keep_firing_for: { label: 'Resolves after calm for', placeholder: '5m' },
  every: { label: 'Evaluated every', placeholder: '10s' },
  max_age: { label: 'Without messages older on arrival than', placeholder: '1h' },
  owner: { label: 'Owner', placeholder: 'a team' },
  runbook: { label: 'Runbook', placeholder: 'https://…' },
  note: { label: 'Note', placeholder: '' },
} as const satisfies Record<TextName, { readonly label: string; readonly placeholder: string }>
const NAMES = Object.keys(TEXTS).filter((name): name is TextName => Object.hasOwn(TEXTS, name))

/** A field without a value is left out. */
function withText(fields: Fields, name: TextName, text: string): Fields {
  const { [name]: _before, ...rest } = fields
  return text === '' ? rest : { ...rest, [name]: text }
}

const isSet = (fields: Fields): boolean =>
  [...FOLDED, ...NAMES].some((name) => fields[name] !== undefined)

/** Fields that most rules leave unset; open for a rule that has some of them. */
export function MoreFields({ fields, onChange }: MoreFieldsProps) {
  const [isOpen] = useState(() => isSet(fields))
  return (
    <details open={isOpen}>
      <summary>More: groups, waits, runbook …</summary>
      <div class="pair">
        <Text
          label="For each (up to three fields)"
          value={(fields.group_by ?? []).join(', ')}
          placeholder="host, source"
          onChange={(value) => onChange(withGroups(fields, value))}
        />
        <Text
          label="Crossed in n of m times"
          value={fields.n_of_m?.join(' of ') ?? ''}
          placeholder="1 of 1"
          onChange={(value) => onChange(withTimes(fields, value))}
        />
        {NAMES.map((name) => (
          <Text
            key={name}
            {...TEXTS[name]}
            value={fields[name] ?? ''}
            onChange={(value) => onChange(withText(fields, name, value))}
          />
        ))}
      </div>
      <label>
        <input
          type="checkbox"
          checked={fields.opens === 'incident'}
          onChange={({ currentTarget: { checked } }) => {
            const { opens: _before, ...rest } = fields
            onChange(checked ? { ...rest, opens: 'incident' } : rest)
          }}
        />{' '}
        Each alert opens an incident
      </label>
      <label>
        <input
          type="checkbox"
          checked={fields.time === 'event'}
          onChange={({ currentTarget: { checked } }) => {
            const { time: _before, ...rest } = fields
            onChange(checked ? { ...rest, time: 'event' } : rest)
          }}
        />{' '}
        Messages count by their own time instead of their arrival
      </label>
      {fields.notify !== undefined && (
        <NotifyTimes
          notify={fields.notify}
          onChange={(notify) => onChange({ ...fields, notify })}
        />
      )}
    </details>
  )
}

function withGroups(fields: Fields, text: string): Fields {
  const { group_by: _before, ...rest } = fields
  const names = text.split(/[\s,]+/).filter((name) => name !== '')
  return names.length === 0 ? rest : { ...rest, group_by: names }
}

/** A text that is not two numbers does not change the rule. */
function withTimes(fields: Fields, text: string): Fields {
  const { n_of_m: before, ...rest } = fields
  if (text === '') return rest
  const [n, m] = text.match(/\d+/g)?.map(Number) ?? []
  if (n === undefined || m === undefined) return before === undefined ? rest : fields
  return { ...rest, n_of_m: [n, m] }
}

interface NotifyTimesProps {
  readonly notify: Notify
  readonly onChange: (notify: Notify) => void
}

const NotifyTimes = ({ notify, onChange }: NotifyTimesProps) => (
  <>
    <div class="pair">
      {TIMES.map((name) => (
        <Text
          key={name}
          label={LABELS[name]}
          value={notify[name] ?? ''}
          placeholder={PLACEHOLDERS[name]}
          onChange={(value) => {
            const { [name]: _before, ...rest } = notify
            onChange(value === '' ? rest : { ...rest, [name]: value })
          }}
        />
      ))}
    </div>
    <label>
      <input
        type="checkbox"
        checked={notify.on_resolve !== false}
        onChange={({ currentTarget: { checked } }) => onChange({ ...notify, on_resolve: checked })}
      />{' '}
      Notifies when it resolved
    </label>
  </>
)
