import type { Severity } from '../../model/event.js'
import type { AnomalyKind } from '../../model/insights.js'
import { NEW_TEMPLATE_WINDOW, type Kind } from './alert-answers.js'
import { Text } from './text-field.js'

export const KINDS = {
  threshold: 'a count crosses a threshold',
  ratio: 'a share crosses a threshold',
  absence: 'nothing arrives any more',
  change: 'a count leaps or falls',
  value: 'a number of an attribute crosses a threshold',
  new_template: 'a new kind of message comes',
  anomaly: 'the insights find an anomaly',
  dead_letters: 'messages are refused',
} as const satisfies Readonly<Record<Kind['type'], string>>

const STARTS: Readonly<Record<Kind['type'], Kind>> = {
  threshold: { type: 'threshold', window: '5m', op: '>', fire: 10 },
  ratio: {
    type: 'ratio',
    part: 'severity>=error',
    window: '5m',
    op: '>',
    fire: 0.05,
    at_least: 100,
  },
  absence: { type: 'absence', for: '5m' },
  change: { type: 'change', window: '15m', factor: 3, at_least: 100 },
  value: { type: 'value', metric: 'p95(duration_ms)', window: '5m', op: '>', fire: 1000 },
  new_template: { type: 'new_template', window: NEW_TEMPLATE_WINDOW, min_severity: 'WARNING' },
  anomaly: { type: 'anomaly', min_score: 10 },
  dead_letters: { type: 'dead_letters', window: '5m', share: 0.01, at_least: 100 },
}

/** The initial values of a kind. */
export const startOf = (type: string): Kind =>
  Object.values(STARTS).find((kind) => kind.type === type) ?? STARTS.threshold

interface KindFieldsProps {
  readonly kind: Kind
  readonly onChange: (kind: Kind) => void
}

const OPS = ['>', '>=', '<', '<='] as const
const isOp = (op: string): op is (typeof OPS)[number] => OPS.some((one) => one === op)

/** The names of all kinds; the type makes sure that none is missing. */
const ANOMALY_NAMES = {
  spike: true,
  drop: true,
  silence: true,
  new: true,
} as const satisfies Readonly<Record<AnomalyKind, true>>
const ANOMALY_KINDS = Object.keys(ANOMALY_NAMES) as readonly AnomalyKind[] // its own keys

const AGAINST = [
  ['before', 'the time before'],
  ['day', 'a day ago'],
  ['week', 'a week ago'],
] as const

/** All severities; the type makes sure that none is missing. */
const SEVERITIES = {
  DEBUG: 'DEBUG',
  INFO: 'INFO',
  WARNING: 'WARNING',
  ERROR: 'ERROR',
  CRITICAL: 'CRITICAL',
} as const satisfies Readonly<Record<Severity, Severity>>
const LEAST = Object.values(SEVERITIES).map((name) => [name, name] as const)

const COUNTED = [
  ['occurrences', 'every occurrence'],
  ['events', 'events, and their repeats not'],
] as const

/** The numbers and times of a rule's kind. */
export function KindFields({ kind, onChange }: KindFieldsProps) {
  switch (kind.type) {
    case 'threshold':
    case 'ratio':
    case 'value':
      return <Crossing kind={kind} onChange={onChange} />
    case 'absence':
      return (
        <div class="pair">
          <Text
            label="Nothing for"
            value={kind.for}
            placeholder="5m"
            onChange={(text) => onChange({ ...kind, for: text })}
          />
          <Text
            label="After it came within"
            value={kind.known ?? ''}
            placeholder="7d"
            onChange={(known) => {
              const { known: _before, ...rest } = kind
              onChange(known === '' ? rest : { ...rest, known })
            }}
          />
        </div>
      )
    case 'change':
      return (
        <div class="pair">
          <Window window={kind.window} onChange={(window) => onChange({ ...kind, window })} />
          <Choice
            label="Against"
            value={kind.against ?? 'before'}
            of={AGAINST}
            onChange={(against) => onChange({ ...kind, against })}
          />
          <Amount
            label="Times more, or less"
            value={kind.factor}
            onChange={(factor) => onChange({ ...kind, factor })}
          />
          <Amount
            label="Of at least"
            value={kind.at_least ?? 10}
            onChange={(least) => onChange({ ...kind, at_least: least })}
          />
        </div>
      )
    case 'new_template':
      return <NewTemplate kind={kind} onChange={onChange} />
    case 'anomaly':
      return (
        <>
          <Amount
            label="Gravity, at least"
            value={kind.min_score ?? 10}
            onChange={(least) => onChange({ ...kind, min_score: least })}
          />
          <AnomalyKinds kind={kind} onChange={onChange} />
        </>
      )
    case 'dead_letters':
      return (
        <div class="pair">
          <Window window={kind.window} onChange={(window) => onChange({ ...kind, window })} />
          <Amount
            label="Share above"
            value={kind.share}
            onChange={(share) => onChange({ ...kind, share })}
          />
          <Amount
            label="Of at least"
            value={kind.at_least ?? 100}
            onChange={(least) => onChange({ ...kind, at_least: least })}
          />
        </div>
      )
  }
}

interface CrossingProps {
  readonly kind: Extract<Kind, { type: 'threshold' | 'ratio' | 'value' }>
  readonly onChange: (kind: Kind) => void
}

/** The comparison and the threshold. */
const Crossing = ({ kind, onChange }: CrossingProps) => (
  <>
    {kind.type === 'value' && (
      <Text
        label="The number: avg, max, p95 … of an attribute"
        value={kind.metric}
        placeholder="p95(duration_ms)"
        onChange={(metric) => onChange({ ...kind, metric })}
      />
    )}
    {kind.type === 'ratio' && (
      <Text
        label="The share that also matches"
        value={kind.part}
        placeholder=""
        onChange={(part) => onChange({ ...kind, part })}
      />
    )}
    {kind.type === 'threshold' && (
      <Choice
        label="Counts"
        value={kind.of ?? 'occurrences'}
        of={COUNTED}
        onChange={(of) => onChange({ ...kind, of })}
      />
    )}
    <div class="pair">
      <Window window={kind.window} onChange={(window) => onChange({ ...kind, window })} />
      <label class="field">
        Is
        <select
          value={kind.op}
          onChange={({ currentTarget: { value: op } }) => isOp(op) && onChange({ ...kind, op })}
        >
          {OPS.map((op) => (
            <option key={op}>{op}</option>
          ))}
        </select>
      </label>
      <Amount
        label="Threshold"
        value={kind.fire}
        onChange={(fire) => onChange({ ...kind, fire })}
      />
      <label class="field">
        Recovers at
        <input
          type="number"
          step="any"
          placeholder="the threshold"
          value={kind.recover ?? ''}
          onChange={({ currentTarget: { valueAsNumber: recover } }) => {
            const { recover: _before, ...rest } = kind
            onChange(Number.isFinite(recover) ? { ...rest, recover } : rest)
          }}
        />
      </label>
      {kind.type === 'ratio' && (
        <Amount
          label="Of at least"
          value={kind.at_least ?? 1}
          onChange={(least) => onChange({ ...kind, at_least: least })}
        />
      )}
    </div>
  </>
)

interface NewTemplateProps {
  readonly kind: Extract<Kind, { type: 'new_template' }>
  readonly onChange: (kind: Kind) => void
}

const NewTemplate = ({ kind, onChange }: NewTemplateProps) => (
  <div class="pair">
    <Choice
      label="Severity, at least"
      value={kind.min_severity ?? 'DEBUG'}
      of={LEAST}
      onChange={(least) => onChange({ ...kind, min_severity: least })}
    />
    <Window
      window={kind.window ?? NEW_TEMPLATE_WINDOW}
      onChange={(window) => onChange({ ...kind, window })}
    />
    <Amount
      label="Occurrences, at least"
      value={kind.at_least ?? 1}
      onChange={(least) => onChange({ ...kind, at_least: least })}
    />
    <Text
      label="Or comes again after"
      value={kind.also_reappeared_after ?? ''}
      placeholder="never"
      onChange={(after) => {
        const { also_reappeared_after: _before, ...rest } = kind
        onChange(after === '' ? rest : { ...rest, also_reappeared_after: after })
      }}
    />
  </div>
)

interface WindowProps {
  readonly window: string
  readonly onChange: (window: string) => void
}

const Window = ({ window, onChange }: WindowProps) => (
  <Text label="Within" value={window} placeholder="5m" onChange={onChange} />
)

interface AmountProps {
  readonly label: string
  readonly value: number
  readonly onChange: (value: number) => void
}

const Amount = ({ label, value, onChange }: AmountProps) => (
  <label class="field">
    {label}
    <input
      type="number"
      step="any"
      required
      value={value}
      onChange={({ currentTarget: { valueAsNumber: n } }) => Number.isFinite(n) && onChange(n)}
    />
  </label>
)

interface AnomalyKindsProps {
  readonly kind: Extract<Kind, { type: 'anomaly' }>
  readonly onChange: (kind: Kind) => void
}

/** All kinds are selected when the rule names none. */
function AnomalyKinds({ kind, onChange }: AnomalyKindsProps) {
  const chosen = kind.kinds ?? ANOMALY_KINDS
  const toggle = (name: AnomalyKind): void => {
    const next = ANOMALY_KINDS.filter((one) => chosen.includes(one) !== (one === name))
    const { kinds: _before, ...rest } = kind
    if (next.length > 0)
      onChange(next.length === ANOMALY_KINDS.length ? rest : { ...rest, kinds: next })
  }
  return (
    <fieldset class="channels">
      <legend class="note">Of the kinds</legend>
      {ANOMALY_KINDS.map((name) => (
        <label key={name}>
          <input type="checkbox" checked={chosen.includes(name)} onChange={() => toggle(name)} />{' '}
          {name}
        </label>
      ))}
    </fieldset>
  )
}

interface ChoiceProps<Name extends string> {
  readonly label: string
  readonly value: Name
  readonly of: readonly (readonly [Name, string])[]
  readonly onChange: (chosen: Name) => void
}

const Choice = <Name extends string>({ label, value, of, onChange }: ChoiceProps<Name>) => (
  <label class="field">
    {label}
    <select
      value={value}
      onChange={({ currentTarget }) => {
        const chosen = of.find(([name]) => name === currentTarget.value)?.[0]
        if (chosen !== undefined) onChange(chosen)
      }}
    >
      {of.map(([name, text]) => (
        <option key={name} value={name}>
          {text}
        </option>
      ))}
    </select>
  </label>
)
