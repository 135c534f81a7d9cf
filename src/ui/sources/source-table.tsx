import type { Static } from '@sinclair/typebox'

import type { SourceSchema } from '../../api/schemas/source.js'
import { call, pathWith, messageOf } from '../lib/api.js'
import { count, perSecond, percent } from '../lib/format.js'
import { clauseLine } from '../lib/query-edit.js'
import { may } from '../lib/session.js'
import { zone } from '../lib/settings.js'
import { ago, fullTime } from '../lib/time.js'
import { notice } from '../shell/notice.js'
import { KeptDays } from './kept-days.js'

export type SourceRow = Static<typeof SourceSchema>

/** Occurrences by source. */
export type Counts = ReadonlyMap<string, number>

/** Counts that could not be read are null. */
interface SourceTableProps {
  readonly sources: readonly SourceRow[]
  /** How many messages each source had in the last 24 hours, repeats included. */
  readonly counts: Counts | null
  /** The number of errors among them. */
  readonly errors: Counts | null
  /** The counts of the most recent time. */
  readonly recent: Counts | null
  /** The length of that time. */
  readonly recentS: number
  readonly onChanged: () => void
}

const STATUS_NOTES: Readonly<Record<SourceRow['status'], string>> = {
  active: 'an event in the last 24 h',
  stale: 'no event for 24 h',
  pending: 'no event yet',
  disabled: 'its events are dropped',
}

const countIn = (counts: Counts | null, name: string): number | null =>
  counts === null ? null : (counts.get(name) ?? 0)

export function SourceTable(props: SourceTableProps) {
  const { sources, counts, errors, recent, recentS, onChanged } = props
  const countOf = (name: string): number => counts?.get(name) ?? 0
  const sorted = sources.toSorted(
    (a, b) => countOf(b.name) - countOf(a.name) || a.name.localeCompare(b.name),
  )
  const most = Math.max(...(counts?.values() ?? []), 1)
  const toggle = ({ name, enabled }: SourceRow): void => {
    const path = `/api/sources/${encodeURIComponent(name)}/toggle`
    call(pathWith(path, { enabled: !enabled }), { method: 'POST' }).then(
      () => {
        notice(
          enabled
            ? `Events of ${name} are dropped from now on.`
            : `Events of ${name} are stored again.`,
        )
        onChanged()
      },
      (error: unknown) => notice(messageOf(error), 'problem'),
    )
  }
  return (
    <div class="table-room">
      <table>
        <thead>
          <tr>
            <th>Source</th>
            <th>Status</th>
            <th class="number">Occurrences, 24 h</th>
            <th class="number">Errors</th>
            <th
              class="number"
              title="Occurrences a second, by their own time, in the last 5 minutes"
            >
              /s
            </th>
            <th class="number" title="Share of dead letters in the last 24 h">
              Refused
            </th>
            <th>Newest event</th>
            <th>Kind</th>
            <th>Kept</th>
            {may('manager') && <th>Taken</th>}
          </tr>
        </thead>
        <tbody>
          {sorted.map((source) => (
            <Line
              key={source.name}
              source={source}
              occurrences={countIn(counts, source.name)}
              errors={countIn(errors, source.name)}
              rate={recent === null ? null : (recent.get(source.name) ?? 0) / recentS}
              most={most}
              onToggle={() => toggle(source)}
              onChanged={onChanged}
            />
          ))}
        </tbody>
      </table>
    </div>
  )
}

interface LineProps {
  readonly source: SourceRow
  readonly occurrences: number | null
  readonly errors: number | null
  readonly rate: number | null
  readonly most: number
  readonly onToggle: () => void
  readonly onChanged: () => void
}

function Line(props: LineProps) {
  const { source, occurrences, errors, rate, most, onToggle, onChanged } = props
  const { name, status, type, connector, dead_letters_24h: dead } = source
  const refused = occurrences === null ? null : dead / Math.max(1, dead + occurrences)
  const isBad = (n: number | null): string => (n !== null && n > 0 ? 'bad' : '')
  return (
    <tr>
      <td class="long" title={name}>
        <a
          href={pathWith('/explore', { q: clauseLine('source', name), from: 'now-24h', to: 'now' })}
        >
          {name}
        </a>
      </td>
      <td>
        <span class={`status ${status}`} title={STATUS_NOTES[status]}>
          {status}
        </span>
      </td>
      <td class="number">
        <span class="meter">
          <i style={{ width: `${((occurrences ?? 0) / most) * 100}%` }} />
        </span>
        <span class="amount">{occurrences === null ? UNKNOWN : count(occurrences)}</span>
      </td>
      <td class={`number ${isBad(errors)}`}>{errorShare(errors, occurrences)}</td>
      <td class="number">{rate === null ? UNKNOWN : perSecond(rate)}</td>
      <td class={`number ${isBad(refused)}`}>{refused === null ? UNKNOWN : percent(refused)}</td>
      <td>{lastEvent(source.last_event_at)}</td>
      <td>{connector === 'custom' ? type : `${type}, ${connector}`}</td>
      <td>
        <KeptDays name={name} days={source.retention_days} onChanged={onChanged} />
      </td>
      {may('manager') && (
        <td>
          <label class="switch">
            <input
              type="checkbox"
              role="switch"
              checked={source.enabled}
              aria-label={`Store events of ${name}`}
              onChange={onToggle}
            />
          </label>
        </td>
      )}
    </tr>
  )
}

const UNKNOWN = '–'

function errorShare(errors: number | null, occurrences: number | null): string {
  if (errors === null || occurrences === null) return UNKNOWN
  return occurrences === 0 ? '' : percent(errors / occurrences)
}

function lastEvent(at: string | null) {
  if (at === null) return <span class="note">never</span>
  const ms = Date.parse(at)
  return (
    <time dateTime={at} title={fullTime(ms, zone.value)}>
      {ago(ms, Date.now())}
    </time>
  )
}
