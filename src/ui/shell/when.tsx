import { zone } from '../lib/settings.js'
import { ago, fullTime, shortTime } from '../lib/time.js'

interface WhenProps {
  readonly at: string | null
  readonly as?: 'ago' | 'time'
}

/** Shows a time in short form, and in full in its tooltip. */
export function When({ at, as = 'time' }: WhenProps) {
  if (at === null) return <span class="note">never</span>
  const ms = Date.parse(at)
  return (
    <time class={as} dateTime={at} title={fullTime(ms, zone.value)}>
      {as === 'ago' ? ago(ms, Date.now()) : shortTime(ms, zone.value)}
    </time>
  )
}
