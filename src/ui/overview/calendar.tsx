import { call, pathWith } from '../lib/api.js'
import { count, counted } from '../lib/format.js'
import { useLoad } from '../lib/load.js'
import { day } from '../lib/time.js'
import { Panel } from './panel.js'

interface Day {
  readonly day: string
  readonly value: number
}

const DAY_MS = 86_400_000
const WEEKS = 53
/** The weeks on a narrow screen: half a year. */
const WEEKS_NARROW = 26
const NARROW = '(width < 1100px)'
const STEPS = 4
/** The labels of the rows; every second day is named. */
const DAYS = ['Mon', '', 'Wed', '', 'Fri', '', 'Sun']

/** The month that begins in a week; '' for none. */
function monthOf(week: readonly { readonly ms: number }[]): string {
  const first = week.find(({ ms }) => new Date(ms).getUTCDate() === 1)
  return first === undefined ? '' : (day(first.ms, 'UTC').split(' ').at(-1) ?? '')
}

/** Occurrences per day, with a column for each week; a darker day has more. Days are UTC days, as they are counted. */
export function Calendar() {
  const isNarrow = matchMedia(NARROW).matches
  const weekCount = isNarrow ? WEEKS_NARROW : WEEKS
  const span = isNarrow ? 'Half a year' : 'A year'
  const loaded = useLoad(`calendar ${weekCount}`, (signal) =>
    call<readonly Day[]>(pathWith('/api/logs/meta/calendar', { days: weekCount * 7 }), { signal }),
  )
  const { value } = loaded
  const counts = new Map((value ?? []).map((one) => [one.day, one.value]))
  const most = Math.max(...counts.values(), 1)
  const todayMs = Math.floor(Date.now() / DAY_MS) * DAY_MS
  const weekday = (new Date(todayMs).getUTCDay() + 6) % 7
  const firstMs = todayMs - (weekday + (weekCount - 1) * 7) * DAY_MS
  const days = Array.from({ length: (todayMs - firstMs) / DAY_MS + 1 }, (_, i) => {
    const ms = firstMs + i * DAY_MS
    const date = new Date(ms).toISOString().slice(0, 10)
    return { date, ms, n: counts.get(date) ?? 0 }
  })
  const weeks = Array.from({ length: weekCount }, (_, i) => days.slice(i * 7, i * 7 + 7))
  const total = days.reduce((sum, { n }) => sum + n, 0)
  return (
    <Panel
      title={value === null ? span : `${span}: ${counted(total, 'occurrence')}`}
      class="wide"
      of={loaded}
      isWaiting={false}
    >
      <div class="calendar">
        <span />
        {DAYS.map((name) => (
          <span key={name} class="day">
            {name}
          </span>
        ))}
        {weeks.flatMap((week) => [
          <span key={week[0]?.date} class="month">
            {monthOf(week)}
          </span>,
          ...week.map(({ date, ms, n }) => (
            <a
              key={date}
              class={`step-${n === 0 ? 0 : Math.max(1, Math.ceil((Math.log1p(n) / Math.log1p(most)) * STEPS))}`}
              href={pathWith('/explore', {
                from: `${date}T00:00:00.000Z`,
                to: new Date(ms + DAY_MS).toISOString(),
              })}
              title={`${day(ms, 'UTC')}: ${count(n)}`}
              aria-label={`${day(ms, 'UTC')}: ${counted(n, 'occurrence')}`}
              tabIndex={n === 0 ? -1 : 0}
            />
          )),
        ])}
      </div>
    </Panel>
  )
}
