import type { RetentionClass } from '../../model/retention.js'
import { call, messageOf } from '../lib/api.js'
import { counted } from '../lib/format.js'
import { may } from '../lib/session.js'
import { ConfirmSelect } from '../shell/confirm-select.js'
import { notice } from '../shell/notice.js'

/** The choices of retention. */
const CHOICES = {
  1: '1 day',
  3: '3 days',
  7: '7 days',
  14: '14 days',
  30: '30 days',
  60: '60 days',
  90: '90 days',
  180: '180 days',
  365: '1 year',
  730: '2 years',
  1095: '3 years',
  1825: '5 years',
  3650: '10 years',
} as const satisfies Record<RetentionClass, string>

interface KeptDaysProps {
  readonly name: string
  /** Null without a retention of its own. */
  readonly days: number | null
  readonly onChanged: () => void
}

const OPTIONS = [['', 'default'], ...Object.entries(CHOICES)] as const

/** The retention of a source, which admins can change. */
export function KeptDays({ name, days, onChanged }: KeptDaysProps) {
  if (!may('admin')) return <>{days === null ? '' : `${days} d`}</>
  const keep = (after: number | null): void => {
    const json = { retention_days: after }
    call(`/api/sources/${encodeURIComponent(name)}`, { method: 'PATCH', json })
      .then(
        () =>
          notice(
            after === null
              ? `${name} has no retention of its own.`
              : `Events of ${name} are kept for ${counted(after, 'day')}, those that are stored too.`,
          ),
        (error: unknown) => notice(messageOf(error), 'problem'),
      )
      .finally(onChanged)
  }
  return (
    <ConfirmSelect
      label={`Days that events of ${name} are kept`}
      title="days after arrival; default: as its application or the severity says"
      value={String(days ?? '')}
      options={OPTIONS}
      sure={(chosen) =>
        Number(chosen) > (days ?? Infinity) ? 'Keep longer' : 'Delete what is older'
      }
      onSure={(chosen) => keep(chosen === '' ? null : Number(chosen))}
    />
  )
}
