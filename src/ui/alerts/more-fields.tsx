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
  repeat: 'Told again after, or never',
} as const satisfies Partial<Record<keyof Notify, string>>
type Time = keyof typeof LABELS
const TIMES: readonly Time[] = ['group_wait', 'group_interval', 'repeat']

/** What most rules leave as it is. */
export function MoreFields({ fields, onChange }: MoreFieldsProps) {
  return (
    <details>
      <summary>More</summary>
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
      <div class="pair">
        <Text
          label="Judged every"
          value={fields.every ?? ''}
          placeholder="10s"
          onChange={(value) => {
            const { every: _before, ...rest } = fields
            onChange(value === '' ? rest : { ...rest, every: value })
          }}
        />
        <Text
          label="Crossed in n of m times"
          value={fields.n_of_m?.join(' of ') ?? ''}
          placeholder="1 of 1"
          onChange={(value) => onChange(withTimes(fields, value))}
        />
        <Text
          label="Not what was older on arrival than"
          value={fields.max_age ?? ''}
          placeholder="1h"
          onChange={(value) => {
            const { max_age: _before, ...rest } = fields
            onChange(value === '' ? rest : { ...rest, max_age: value })
          }}
        />
      </div>
      <label>
        <input
          type="checkbox"
          checked={fields.time === 'event'}
          onChange={({ currentTarget: { checked } }) => {
            const { time: _before, ...rest } = fields
            onChange(checked ? { ...rest, time: 'event' } : rest)
          }}
        />{' '}
        Messages count by their own time, and not by that of their arrival
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

/** A text that is not two numbers leaves the rule as it is. */
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
      Tells that it resolved
    </label>
  </>
)
