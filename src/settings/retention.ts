import { SEVERITIES, type Severity } from '../model/event.js'
import { isRetentionClass, RETENTION_CLASSES, type RetentionClass } from '../model/retention.js'
import { fail, list, type Setting } from './setting.js'

const ENV = 'RETENTION_DAYS_BY_SEVERITY'
const DOC =
  'days of events whose source and application have no retention of their own, such as DEBUG=3,INFO=14; the others: RETENTION_DAYS'

export const retentionBySeverity: Setting<ReadonlyMap<Severity, RetentionClass>> = {
  env: ENV,
  fallback: '',
  doc: DOC,
  secret: false,
  parse: (value) => {
    const found = new Map<Severity, RetentionClass>()
    for (const item of list(ENV, DOC).parse(value)) {
      const [, name = '', text = ''] = /^([a-z]+) *= *(\d{1,4})$/i.exec(item) ?? []
      const severity = SEVERITIES.find((one) => one === name.toUpperCase())
      const days = Number(text)
      if (severity === undefined || found.has(severity))
        return fail(ENV, `: ${item} is not SEVERITY=DAYS, each of ${SEVERITIES.join(', ')} once`)
      if (!isRetentionClass(days))
        return fail(ENV, `: the days of ${item} are not one of ${RETENTION_CLASSES.join(', ')}`)
      found.set(severity, days)
    }
    return found
  },
}

/** A share (0..1) of the disk, bytes, or null for no limit. */
export const maxDisk: Setting<
  | { readonly kind: 'share'; readonly share: number }
  | { readonly kind: 'bytes'; readonly bytes: number }
  | null
> = {
  env: 'MAX_DISK',
  fallback: '85%',
  doc: 'above it the oldest days of the shortest retention are dropped: a per cent of the disk (embedded ClickHouse only), or the bytes of the stored events, such as 50000000000; 10% to 99%, or from 1000000 bytes; off = never',
  secret: false,
  parse: (value) => {
    if (value.toLowerCase() === 'off') return null
    const percent = Number(/^(\d{1,2})%$/.exec(value)?.[1] ?? Number.NaN)
    if (percent >= 10) return { kind: 'share', share: percent / 100 }
    const bytes = Number(/^\d{7,17}$/.exec(value)?.[0] ?? Number.NaN)
    if (bytes >= 1_000_000) return { kind: 'bytes', bytes }
    return fail(
      'MAX_DISK',
      `=${value} is not 10% to 99%, bytes from 1000000 (1 MB) on, such as 50000000000 for 50 GB, or off`,
    )
  },
}

/** @param refuse reports a problem if there is one */
export function checkRetentionDays(
  config: {
    readonly retentionDays: number
    readonly retentionBySeverity: ReadonlyMap<Severity, RetentionClass>
  },
  refuse: (wrong: boolean, problem: string) => void,
): void {
  for (const [severity, days] of config.retentionBySeverity)
    refuse(
      days > config.retentionDays,
      `${ENV}: ${severity}=${days} is above RETENTION_DAYS=${config.retentionDays}, which is the longest for all`,
    )
}
