import type { State } from '../coordination/state.js'
import { MINUTE_MS } from '../model/time.js'
import type { FailingChannel } from './delivery.js'
import { isBehind } from './system-alert.js'

/** The status of the evaluation, shared with all instances. */
export interface EvaluationStatus {
  /** Messages that arrived before this time are evaluated. */
  readonly untilMs: number
  /** The error of each rule that cannot be evaluated, by rule. */
  readonly problems: Readonly<Record<string, string>>
  /** The ids of the rules that cannot be evaluated. */
  readonly unknown: readonly string[]
  /** The channels whose notices fail, by id. */
  readonly failing: Readonly<Record<string, FailingChannel>>
  /** Notices dropped within the last hour, because the queue was full. */
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

/** Why alerts are not raised or notices not sent. @returns null when all is well */
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
