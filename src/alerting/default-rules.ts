/* The rules that a new installation has, without a channel. Each is created once, so a deleted one does not come back. */

import { Type } from '@sinclair/typebox'

import { AppError } from '../model/errors.js'
import type { Records } from '../records/newest-first.js'
import type { Rule } from './rule.js'
import type { RuleFields } from './rule-fields.js'

/** Records that a default rule was created; the record's id is that of the rule. */
export const MadeRuleDoc = Type.Object({ madeAtMs: Type.Integer() })
export interface MadeRule {
  readonly madeAtMs: number
}

export const ANOMALY_RULE_ID = '00000000-0000-8000-a000-000000000002'
export const DEAD_LETTER_RULE_ID = '00000000-0000-8000-a000-000000000003'

const DEFAULTS: Readonly<Record<string, RuleFields>> = {
  [ANOMALY_RULE_ID]: {
    name: 'Anomalies',
    severity: 'P1',
    note: 'Grave anomalies of the insights. The severity of an alert is that of its anomaly, at most P1.',
    kind: { type: 'anomaly', min_score: 10 },
    keep_firing_for: '6h',
  },
  [DEAD_LETTER_RULE_ID]: {
    name: 'Dead letters',
    severity: 'P3',
    note: 'Many records of a source are rejected.',
    kind: { type: 'dead_letters', window: '15m', share: 0.05, at_least: 100 },
    group_by: ['source'],
    every: '1m',
  },
}

export async function addDefaultRules(
  rules: Pick<Records<Rule>, 'update'>,
  made: Pick<Records<MadeRule>, 'get' | 'update'>,
): Promise<void> {
  const missing = Object.entries(DEFAULTS).filter(([id]) => made.get(id) === null)
  for (const [id, fields] of missing) {
    const atMs = Date.now()
    const facts = { id, version: 1, createdAtMs: atMs, updatedAtMs: atMs, updatedBy: '' }
    try {
      await rules.update(id, (current) => current ?? { ...facts, fields })
    } catch (error) {
      // There are as many rules as there may be; the next start tries again.
      if (error instanceof AppError && error.code === 'overloaded') continue
      throw error
    }
    await made.update(id, () => ({ madeAtMs: atMs }))
  }
}
