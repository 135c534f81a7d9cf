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
