import type { State } from '../coordination/state.js'
import { MINUTE_MS } from '../model/time.js'
import type { FailingChannel } from './delivery.js'
import { isBehind } from './system-alert.js'

/** How the evaluation stands, for all instances. */
export interface EvaluationStatus {
  /** Everything that arrived before was judged. */
  readonly untilMs: number
  /** By rule, what keeps it from being evaluated. */
  readonly problems: Readonly<Record<string, string>>
  /** The rules that can't be evaluated now. */
  readonly unknown: readonly string[]
  /** Channels that do not deliver. */
  readonly failing: Readonly<Record<string, FailingChannel>>
  /** Notices that were left out within the last hour, because too many waited. */
  readonly dropped: number
}

const KEY = 'alerting:status'
const KEPT_MS = 10 * MINUTE_MS

export const shareStatus = (state: Pick<State, 'set'>, status: EvaluationStatus): Promise<void> =>
  state.set(KEY, JSON.stringify(status), KEPT_MS)

export async function evaluationStatus(
  state: Pick<State, 'get'>,
): Promise<EvaluationStatus | null> {
  const text = await state.get(KEY)
  return text === null ? null : (JSON.parse(text) as EvaluationStatus) // written above
}

/** What keeps alerts from being raised or told. @returns null for nothing */
export function problemOf(status: EvaluationStatus | null, nowMs: number): string | null {
  if (status === null) return null
  const { untilMs, unknown, failing, dropped } = status
  const channels = Object.keys(failing).length
  const found = [
    isBehind(untilMs, nowMs) ? 'alert rules are evaluated late' : null,
    unknown.length > 0 ? `alert rules that can't be evaluated: ${unknown.length}` : null,
    channels > 0 ? `notification channels that do not deliver: ${channels}` : null,
    dropped > 0 ? `notices dropped within the last hour: ${dropped}` : null,
  ].filter((one) => one !== null)
  return found.length === 0 ? null : found.join('; ')
}
