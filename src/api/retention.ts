import type { RetentionClass } from '../model/retention.js'
import type { Services } from './services.js'
import { throwOnErrors } from './validation.js'

/** @throws AppError `validation_error` when the days exceed the longest retention */
export function checkRetention(
  days: RetentionClass | null | undefined,
  { config: { retentionDays } }: Pick<Services, 'config'>,
): void {
  if (days == null || days <= retentionDays) return
  const message = `must be at most ${retentionDays} (RETENTION_DAYS)`
  throwOnErrors([{ in: 'body', path: 'retention_days', message }])
}
