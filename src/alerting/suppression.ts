/*
 * Silences, which end, and maintenance windows, which recur each week, hold notices back. Both are
 * checked when a notice is sent, so they apply to alerts that fire already. Muting a rule, group or
 * template creates a silence.
 */

import { Type, type Static } from '@sinclair/typebox'

import { AppError } from '../model/errors.js'
import { nameOf } from '../model/schemas.js'
import { DAY_MS } from '../model/time.js'
import { createDocuments, DocumentOf, type Document, type Documents } from '../records/documents.js'
import type { Records } from '../records/newest-first.js'
import { Matchers, matchesAll, type Labels } from './matchers.js'

const Reason = Type.String({
  minLength: 1,
  maxLength: 500,
  pattern: '\\S',
  description: 'text of more than blanks',
})

const Silence = Type.Object({
  matchers: Matchers,
  reason: Reason,
  startsAtMs: Type.Integer(),
  endsAtMs: Type.Integer(),
})
export type SilenceFields = Static<typeof Silence>
export const SilenceDoc = DocumentOf(Silence)
export type Silence = Document<SilenceFields>

const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const
const WallClock = Type.String({
  pattern: '^([01][0-9]|2[0-3]):[0-5][0-9]$',
  maxLength: 5,
  description: 'a time of the day such as 22:00',
  examples: ['22:00'],
})

export const WindowFields = Type.Object(
  {
    name: nameOf(120),
    enabled: Type.Optional(Type.Boolean({ description: 'default true' })),
    reason: Reason,
    matchers: Matchers,
    time_zone: Type.String({
      minLength: 1,
      maxLength: 64,
      description: 'an IANA zone',
      examples: ['Europe/Berlin'],
    }),
    days: Type.Array(Type.Union(DAYS.map((day) => Type.Literal(day))), {
      minItems: 1,
      maxItems: 7,
      uniqueItems: true,
      description: 'on which it begins',
    }),
    from: WallClock,
    to: Type.String({
      ...WallClock,
      description: 'a time of the day such as 06:00; of the next day where it is not after `from`',
    }),
  },
  { additionalProperties: false, title: 'MaintenanceWindowFields' },
)
export type WindowFields = Static<typeof WindowFields>
export const WindowDoc = DocumentOf(WindowFields)
export type MaintenanceWindow = Document<WindowFields>

/** The most silences, and the most maintenance windows. */
export const MOST_QUIET = 1_000
const MAX_SILENCE_MS = 366 * DAY_MS
/** How long an expired silence stays listed. */
const KEPT_MS = 30 * DAY_MS

export type Silences = Documents<SilenceFields>

/** Every change may reject with `dependency_unavailable`. */
export function createSilences(records: Records<Silence>): Silences {
  const silences = createDocuments<SilenceFields>({
    records,
    noun: 'silence',
    idName: 'silence_id',
    keeps: 0,
    toStored: checkedSilence,
  })
  return {
    ...silences,
    async create(userId, fields) {
      const checked = checkedSilence(fields)
      const old = silences.list().filter((one) => one.fields.endsAtMs < Date.now() - KEPT_MS)
      for (const { id } of old) await records.remove(id)
      return await silences.create(userId, checked)
    },
  }
}

function checkedSilence(fields: SilenceFields): SilenceFields {
  const { startsAtMs, endsAtMs } = fields
  if (endsAtMs <= startsAtMs) throw wrong('ends_at', 'must be after `starts_at`')
  if (endsAtMs - startsAtMs > MAX_SILENCE_MS)
    throw wrong('ends_at', 'a silence lasts at most a year')
  return fields
}

export type MaintenanceWindows = Documents<WindowFields>

/** Every change may reject with `dependency_unavailable`. */
export const createMaintenanceWindows = (records: Records<MaintenanceWindow>): MaintenanceWindows =>
  createDocuments<WindowFields>({
    records,
    noun: 'maintenance window',
    idName: 'window_id',
    keeps: 0,
    toStored(fields) {
      if (!isZone(fields.time_zone)) throw wrong('time_zone', 'is not an IANA time zone')
      return fields
    },
  })

function isZone(name: string): boolean {
  try {
    wallClockOf(name)
    return true
  } catch {
    return false
  }
}

const wrong = (path: string, message: string): AppError =>
  new AppError('validation_error', `invalid: ${path}`, {
    details: { errors: [{ in: 'body', path, message }] },
  })

export const silenceState = (
  { startsAtMs, endsAtMs }: SilenceFields,
  nowMs: number,
): 'pending' | 'active' | 'expired' => {
  if (nowMs >= endsAtMs) return 'expired'
  return nowMs < startsAtMs ? 'pending' : 'active'
}

const wallClockOf = (timeZone: string): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat('en-GB', {
    timeZone,
    weekday: 'short',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  })

/**
 * Whether a window is open at the local time of its zone. An hour that occurs twice when daylight
 * saving time ends is open twice.
 */
export function isOpen(
  { enabled = true, time_zone: zone, days, from, to }: WindowFields,
  nowMs: number,
  clock = wallClockOf(zone),
): boolean {
  if (!enabled) return false
  const parts = clock.formatToParts(nowMs)
  const part = (type: string): string => parts.find((one) => one.type === type)?.value ?? ''
  const time = `${part('hour')}:${part('minute')}`
  const today = DAYS.findIndex((day) => day === part('weekday').toLowerCase())
  const begins = (day: number): boolean => days.some((one) => one === DAYS[(day + 7) % 7])
  if (from < to) return begins(today) && time >= from && time < to
  return (begins(today) && time >= from) || (begins(today - 1) && time < to)
}

/** The silence, window or alert that holds notices back. */
export interface Suppression {
  readonly by: 'silence' | 'maintenance window' | 'alert'
  readonly id: string
  readonly reason: string
}

export type SuppressionOf = (labels: Labels, nowMs: number) => Suppression | null

/** Creates the lookup of what holds the notices of an alert back. */
export function createSuppressionOf(
  silences: Pick<Silences, 'list'>,
  windows: Pick<MaintenanceWindows, 'list'>,
): SuppressionOf {
  // An Intl.DateTimeFormat takes 0.1 to 0.3 ms to construct, and a thousand windows may be checked
  // for each of a thousand notices.
  const clocks = new WeakMap<WindowFields, Intl.DateTimeFormat>()
  const clockOf = (fields: WindowFields): Intl.DateTimeFormat => {
    const clock = clocks.get(fields) ?? wallClockOf(fields.time_zone)
    clocks.set(fields, clock)
    return clock
  }
  return (labels, nowMs) => {
    const silence = silences
      .list()
      .find(
        ({ fields }) =>
          silenceState(fields, nowMs) === 'active' && matchesAll(fields.matchers, labels),
      )
    if (silence !== undefined)
      return { by: 'silence', id: silence.id, reason: silence.fields.reason }
    const window = windows
      .list()
      .find(
        ({ fields }) =>
          matchesAll(fields.matchers, labels) && isOpen(fields, nowMs, clockOf(fields)),
      )
    return window === undefined
      ? null
      : { by: 'maintenance window', id: window.id, reason: window.fields.reason }
  }
}
