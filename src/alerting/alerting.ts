import type { Store } from '../clickhouse/client.js'
import type { Entities } from '../coordination/entities.js'
import type { State } from '../coordination/state.js'
import type { Arrivals } from '../events/arrivals.js'
import type { Redirects } from '../events/filter.js'
import { resolveNames, type Names } from '../events/resolve.js'
import type { Alerts } from '../records/alerts.js'
import type { Log } from '../telemetry/log.js'
import { createCountReader } from './counts.js'
import { evaluationStatus, Evaluator } from './evaluator.js'
import { createAlertLog } from './log.js'
import { RuleDoc, type Rule } from './rule.js'
import { createRules } from './rules.js'
import { createWatermark, type WatermarkDeps } from './watermark.js'

interface AlertingDeps extends WatermarkDeps {
  readonly entities: Entities
  readonly store: Store
  readonly state: State
  readonly log: Log
  readonly arrivals: Arrivals
  readonly context: Names & { readonly redirects: () => Redirects }
  readonly alerts: Alerts
  readonly hasSource: (name: string) => boolean
}

/** Builds everything of alert rules: the rules, what they decided, and their evaluation, which `start` begins. */
export function createAlerting(deps: AlertingDeps) {
  const { entities, store, state, log, arrivals, context, alerts, hasSource } = deps
  const rules = createRules({ records: entities.collection<Rule>('alert_rule', RuleDoc) })
  const alertLog = createAlertLog(store)
  const counts = createCountReader({
    store,
    arrivals,
    resolve: (query) => resolveNames(query, context),
    redirects: context.redirects,
  })
  const watermark = createWatermark(deps)
  return {
    rules,
    alertLog,
    status: () => evaluationStatus(state).catch(() => null),
    evaluator: new Evaluator({
      state,
      log,
      alertLog,
      counts,
      arrivals,
      watermark,
      rules,
      alerts,
      hasSource,
    }),
  }
}
