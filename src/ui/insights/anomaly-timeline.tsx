import { count, short } from '../lib/format.js'
import { addressOf, place } from '../lib/router.js'
import { zone } from '../lib/settings.js'
import { day } from '../lib/time.js'
import {
  isLearning,
  NOT_ANALYSED,
  subjectOf,
  type Anomaly,
  type Snapshot,
} from './insight-answers.js'

const DAYS = 5
const DAY_MS = 86_400_000
/** In every zone, days begin at a multiple of this. */
const QUARTER_MS = 900_000
/** The greatest score that an anomaly can have, which means this score or more. */
const MOST_SCORE = 50
/** The most leaders that are drawn; their parts are only counted. */
const MOST = 40

interface TimelineProps {
  readonly snapshot: Snapshot
  readonly openId: string | null
}

/** A line for each anomaly of the last days, in descending order of gravity. Parts of wider anomalies are counted with those. */
export function AnomalyTimeline({ snapshot, openId }: TimelineProps) {
  const endMs = Date.parse(snapshot.as_of)
  const startMs = endMs - DAYS * DAY_MS
  const all = snapshot.anomalies.filter(({ part_of: leader }) => leader === null)
  const leaders = all.toSorted((a, b) => b.score - a.score).slice(0, MOST)
  if (leaders.length === 0)
    return (
      <p class="note">
        {isLearning(snapshot, 'anomalies')
          ? NOT_ANALYSED
          : 'No anomalies: everything is as expected.'}
      </p>
    )
  const share = (ms: number): number =>
    (Math.max(0, Math.min(endMs, ms) - startMs) / (endMs - startMs)) * 100
  const days = beginnings(startMs, endMs)
  return (
    <div class="anomaly-lines" style={{ '--day': `${share(days[0] ?? startMs) * 1.25}%` }}>
      <div class="days" aria-hidden="true">
        {days.map((ms) => (
          <span key={ms} style={{ left: `${share(ms)}%` }}>
            {day(ms, zone.value)}
          </span>
        ))}
      </div>
      <ul>
        {leaders.map((one) => (
          <Line
            key={one.id}
            one={one}
            isOpen={one.id === openId}
            parts={snapshot.anomalies.filter((part) => part.part_of === one.id).length}
            shareAt={share}
          />
        ))}
      </ul>
      {all.length > MOST && (
        <p class="note">
          The {MOST} gravest of {count(all.length)} are drawn.
        </p>
      )}
    </div>
  )
}

/** The times between two others at which a day begins in the chosen zone. */
function beginnings(fromMs: number, untilMs: number): readonly number[] {
  const found: number[] = []
  const firstMs = Math.ceil(fromMs / QUARTER_MS) * QUARTER_MS
  for (let ms = firstMs; ms < untilMs; ms += QUARTER_MS)
    if (day(ms, zone.value) !== day(ms - QUARTER_MS, zone.value)) found.push(ms)
  return found
}

interface LineProps {
  readonly one: Anomaly
  readonly isOpen: boolean
  readonly parts: number
  readonly shareAt: (ms: number) => number
}

function Line({ one, isOpen, parts, shareAt }: LineProps) {
  const left = shareAt(Date.parse(one.started_at))
  const right = shareAt(one.ended_at === null ? Number.POSITIVE_INFINITY : Date.parse(one.ended_at))
  const [low, high] = one.expected_range
  return (
    <li>
      <a
        href={addressOf(place.value.path, place.value.params, { id: one.id })}
        aria-current={isOpen}
        title={`${count(one.observed)} in place of ${short(low)} to ${short(high)}`}
      >
        <span class="name">
          <em class={one.kind}>{one.kind}</em> <span class="subject">{subjectOf(one)}</span>
          {parts > 0 && <small> and {parts} in it</small>}
        </span>
        <span class="lane">
          <i
            class={`${one.kind} ${one.state}`}
            style={{ left: `${left}%`, width: `max(6px, ${right - left}%)` }}
          />
        </span>
        <b>
          {one.score >= MOST_SCORE && '≥ '}
          {one.score.toFixed(1)} σ
        </b>
      </a>
    </li>
  )
}
