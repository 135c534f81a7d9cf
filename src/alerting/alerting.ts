import type { Store } from '../clickhouse/client.js'
import type { Entities } from '../coordination/entities.js'
import type { State } from '../coordination/state.js'
import type { Redirects } from '../events/filter.js'
import { resolveNames, type Names } from '../events/resolve.js'
import type { Alerts } from '../records/alerts.js'
import type { Incidents } from '../records/incidents.js'
import type { Log } from '../telemetry/log.js'
import { createBacktest } from './backtest.js'
import { ChannelDoc, createChannels, type Channel, type Channels } from './channel.js'
import type { CountDeps } from './count.js'
import { createCountReader } from './counts.js'
import { createFacts } from './facts.js'
import type { Query } from '../query/ast.js'
import { Evaluator } from './evaluator.js'
import { evaluationStatus, problemOf } from './status.js'
import { createDefaultRules, MadeRuleDoc, type MadeRule } from './default-rules.js'
import { createDeliveryLog } from './delivery-log.js'
import { createAlertLog } from './alert-log.js'
import { createProjection } from './projection.js'
import { RuleDoc, type Rule } from './rule.js'
import type { Smtp } from '../lib/smtp.js'
import { CHANGED_KEY_HINT, type Seal } from '../coordination/seal.js'
import { createRules } from './rules.js'
import {
  createMaintenanceWindows,
  createSuppressionOf,
  createSilences,
  SilenceDoc,
  WindowDoc,
  type MaintenanceWindow,
  type Silence,
} from './suppression.js'
import { createSystemAlert } from './system-alert.js'
import { createSend } from './send.js'
import { createWatermark, type WatermarkDeps } from './watermark.js'

interface AlertingDeps extends WatermarkDeps {
  readonly entities: Entities
  readonly store: Store
  readonly state: State
  readonly log: Log
  readonly context: Names & { readonly redirects: () => Redirects }
  readonly alerts: Alerts
  readonly incidents: Incidents
  readonly findings: CountDeps['findings']
  /** Called when alerts were raised or resolved. */
  readonly onAlerts: () => Promise<void>
  readonly hasSource: (name: string) => boolean
  readonly seal: Seal
  readonly mayBePrivate: boolean
  /** The public URL of the web page; '' when it is not set. */
  readonly publicUrl: string
  readonly smtp: Smtp | null
}

/** Builds the alert rules, the log of their transitions and their evaluation, which `start` begins. */
export function createAlerting(deps: AlertingDeps) {
  const { entities, store, state, log, context, alerts } = deps
  const ruleRecords = entities.collection<Rule>('alert_rule', RuleDoc)
  const madeRules = entities.collection<MadeRule>('alert_rule_made', MadeRuleDoc)
  const channels = createChannels({
    records: entities.collection<Channel>('notification_channel', ChannelDoc),
    seal: deps.seal,
  })
  warnOfUnreadable(channels, log)
  const rules = createRules({ records: ruleRecords, channels })
  const { silences, maintenanceWindows } = openQuiet(entities)
  const send = createSend({ mayBePrivate: deps.mayBePrivate, smtp: deps.smtp })
  const alertLog = createAlertLog(store, log)
  const status = () => evaluationStatus(state).catch(() => null)
  const deliveryLog = createDeliveryLog(store, log)
  const countDeps = {
    store,
    resolve: (query: Query) => resolveNames(query, context),
    redirects: context.redirects,
    findings: deps.findings,
  }
  const counts = createCountReader(countDeps)
  const factsOf = createFacts({ ...countDeps, counts, rules, publicUrl: deps.publicUrl })
  return {
    /** The services of the routes. */
    services: {
      alertRules: rules,
      alertLog,
      alertRuleStatus: status,
      channels,
      backtestRule: createBacktest(counts),
      silences,
      maintenanceWindows,
      sendNotice: send,
      deliveriesOf: deliveryLog.of,
    },
    /** Why alerts are not raised or notices not sent; null when all is well. */
    problem: async () => problemOf(await status(), Date.now()),
    addDefaultRules: createDefaultRules(ruleRecords, madeRules),
    evaluator: new Evaluator({
      state,
      log,
      alertLog,
      counts,
      watermark: createWatermark(deps),
      rules,
      hasSource: deps.hasSource,
      project: createProjection(deps),
      systemAlert: createSystemAlert(alerts),
      delivery: {
        deliveryLog,
        channels,
        send,
        factsOf,
        log,
        suppressionOf: createSuppressionOf(silences, maintenanceWindows),
        isAcknowledged: alerts.isAcknowledged,
      },
    }),
  }
}

function warnOfUnreadable({ list, targetOf }: Pick<Channels, 'list' | 'targetOf'>, log: Log): void {
  const names = list()
    .filter((channel) => targetOf(channel) === null)
    .map(({ fields }) => fields.name)
  if (names.length > 0)
    log.error(
      { count: names.length, channels: names.slice(0, 20) },
      `notification channels were encrypted with another DATA_KEY, and get no notices: ${CHANGED_KEY_HINT}, or enter their secrets again`,
    )
}

const openQuiet = (entities: Entities) => ({
  silences: createSilences(entities.collection<Silence>('alert_silence', SilenceDoc)),
  maintenanceWindows: createMaintenanceWindows(
    entities.collection<MaintenanceWindow>('maintenance_window', WindowDoc),
  ),
})
