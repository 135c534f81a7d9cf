import { short } from '../lib/format.js'
import { zone } from '../lib/settings.js'
import { shortTime } from '../lib/time.js'
import type { Snapshot } from './insight-answers.js'

interface ForecastProps {
  readonly forecast: Snapshot['forecast']['events']
  readonly title: string
  readonly isError?: boolean
}

const WIDTH = 960
const HEIGHT = 70

/** The expected counts of the next hours, with their interval. */
export function ForecastChart({ forecast, title, isError = false }: ForecastProps) {
  const { hours } = forecast
  const [first] = hours
  const last = hours.at(-1)
  if (first === undefined || last === undefined)
    return <p class="note">{title}: not yet, four days of events are needed.</p>
  const most = Math.max(...hours.map(({ high }) => high), 1)
  const x = (i: number): number => (i / (hours.length - 1)) * WIDTH
  const y = (n: number): number => HEIGHT - (n / most) * (HEIGHT - 4)
  const upper = hours.map(({ high }, i) => `${x(i)},${y(high)}`)
  const lower = hours.map(({ low }, i) => `${x(i)},${y(low)}`).toReversed()
  return (
    <figure class={`forecast ${isError ? 'error' : ''}`}>
      <figcaption>
        {title}: <b>{short(Math.round(first.expected))}</b> now, between{' '}
        {short(Math.round(first.low))} and {short(Math.round(first.high))}; at most{' '}
        {short(Math.round(most))}
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        <polygon points={[...upper, ...lower].join(' ')} />
        <polyline
          points={hours.map(({ expected }, i) => `${x(i)},${y(expected)}`).join(' ')}
          vector-effect="non-scaling-stroke"
        />
      </svg>
      <div class="ends" aria-hidden="true">
        <span>{shortTime(Date.parse(first.t), zone.value)}</span>
        <span>{shortTime(Date.parse(last.t), zone.value)}</span>
      </div>
    </figure>
  )
}
