import { call } from '../lib/api.js'
import { percent } from '../lib/format.js'
import { useLoad } from '../lib/load.js'
import type { Detail } from './rows.js'
import { Problem } from '../shell/problem.js'

interface Explanation {
  readonly priority_source: string
  readonly template_priority: string | null
  readonly model: {
    readonly priority: string
    readonly confidence: number
    readonly score: number
    readonly chances: Readonly<Record<string, number>>
    readonly contributions: readonly { readonly feature: string; readonly points: number }[]
  }
}

interface PriorityProps {
  readonly event: Detail
  readonly onCorrect: (event: Detail, priority: Detail['priority']) => void
}

const REASONS: Readonly<Record<string, string>> = {
  manual: 'A person has set the priority of this event.',
  template: 'A person has set the priority of its template.',
  auto: 'The model has chosen the priority; these are its reasons.',
}

/** Why the event has its priority: the parts of the model's score. */
export function Priority({ event }: PriorityProps) {
  const loaded = useLoad(`explain ${event.id} ${event.priority}`, (signal) =>
    call<Explanation>(`/api/logs/${event.id}/explain`, { signal }),
  )
  const { value } = loaded
  if (loaded.error !== null) return <Problem of={loaded} />
  if (value === null) return null
  const { model, priority_source: by } = value
  const most = Math.max(...model.contributions.map(({ points }) => Math.abs(points)), 0.01)
  return (
    <div class="why">
      <p>{REASONS[by]}</p>
      <p class="note">
        The model says {model.priority} with a confidence of {percent(model.confidence)}. Points
        above zero make an event more urgent.
      </p>
      <ul class="contributions">
        {model.contributions.map(({ feature, points }) => (
          <li key={feature}>
            <span>{feature}</span>
            <span class="axis">
              <i
                class={points < 0 ? 'less' : 'more'}
                style={{ width: `${(Math.abs(points) / most) * 50}%` }}
              />
            </span>
            <b>
              {points > 0 ? '+' : ''}
              {points.toFixed(2)}
            </b>
          </li>
        ))}
      </ul>
      <p class="chances">
        {Object.entries(model.chances).map(([priority, chance]) => (
          <span key={priority} class={priority.toLowerCase()}>
            {priority} <b>{percent(chance)}</b>
          </span>
        ))}
      </p>
      <p class="note">
        Not right? Keys <kbd>1</kbd> to <kbd>4</kbd> set another priority, for later events of the
        template too.
      </p>
    </div>
  )
}
