import type { Entities } from '../coordination/entities.js'
import type { Instance } from '../coordination/instance.js'
import type { Redirects } from '../events/filter.js'
import { resolveNames, type Names } from '../events/resolve.js'
import type { Insights } from '../insights/insights.js'
import type { WorkRecords } from '../records/records.js'
import type { Sources } from '../records/sources.js'
import type { Log } from '../telemetry/log.js'
import { createBacktest } from './backtest.js'
import {
  ChannelDoc,
  createChannels,
  CHANNEL_BOUND,
  type Channel,
  type Channels,
} from './channel.js'
import { createCountReader } from './counts.js'
import { createFacts } from './facts.js'
import type { Query } from '../query/ast.js'
import { Evaluator } from './evaluator.js'
import { evaluationStatus, problemOf } from './status.js'
import { addDefaultRules, MadeRuleDoc, type MadeRule } from './default-rules.js'
import { createDeliveryLog } from './delivery-log.js'
import { createAlertLog } from './alert-log.js'
import { createProjection } from './projection.js'
import { RuleDoc, type Rule } from './rule.js'
import { openSmtp } from '../lib/smtp.js'
import { CHANGED_KEY_HINT, type Seal } from '../coordination/seal.js'
import { createRules, RULE_BOUND } from './rules.js'
import {
  createMaintenanceWindows,
  createSuppressionOf,
  createSilences,
  MOST_QUIET,
  SilenceDoc,
  WindowDoc,
  type MaintenanceWindow,
  type Silence,
} from './suppression.js'
import { createSystemAlert } from './system-alert.js'
import type { Wal } from '../wal/wal.js'
import { createSend } from './send.js'
import { createWatermark, type WatermarkDeps } from './watermark.js'

interface AlertingDeps extends Pick<
  Instance,
  'config' | 'log' | 'entities' | 'store' | 'state' | 'self'
> {
  readonly wal: Wal
  readonly pipeline: WatermarkDeps['pipeline']
  readonly seal: Seal
  readonly eventContext: Names & { readonly redirects: () => Redirects }
  readonly records: WorkRecords
  readonly sources: Sources
  readonly insights: Insights
  /** Called when alerts were raised or resolved. */
  readonly onChanged: () => Promise<void>
}

export type Alerting = Awaited<ReturnType<typeof openAlerting>>

export type AlertingServices = Alerting['services']

/** Opens everything of alert rules: the rules, what they decided, and their evaluation, which `start` begins. */
export async function openAlerting(deps: AlertingDeps) {
  const { config, entities, store, state, log, eventContext: context, insights } = deps
  const { alerts } = deps.records
  const hasSource = (name: string): boolean => deps.sources.get(name) !== undefined
  const ruleRecords = entities.collection<Rule>('alert_rule', RuleDoc, RULE_BOUND)
  const madeRules = entities.collection<MadeRule>('alert_rule_made', MadeRuleDoc)
  const channels = openChannels(deps)
  const rules = createRules({ records: ruleRecords, channels })
  const { silences, maintenanceWindows } = openQuiet(entities)
  const send = createSend({ mayBePrivate: config.alertPrivateAddresses, smtp: openSmtp(config) })
  const alertLog = createAlertLog(store, log)
  const status = () => evaluationStatus(state).catch(() => null)
  const deliveryLog = createDeliveryLog(store, log)
  const countDeps = {
    store,
    resolve: (query: Query) => resolveNames(query, context),
    redirects: context.redirects,
    findings: (sinceMs: number, signal?: AbortSignal) => insights.findings(sinceMs, signal),
  }
  const counts = createCountReader(countDeps)
  const factsOf = createFacts({ ...countDeps, counts, rules, publicUrl: config.publicUrl })
  const evaluator = new Evaluator({
    state,
    log,
    alertLog,
    counts,
    watermark: createWatermark(deps),
    rules,
    hasSource,
    project: createProjection({ ...deps.records, hasSource, onAlerts: deps.onChanged }),
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
  })
  await addDefaultRules(ruleRecords, madeRules)
  return {
    /** The services of the routes. */
    services: {
      alertRules: rules,
      alertLog,
      /** How the evaluation of the rules stands; null when it is not known. */
      alertRuleStatus: status,
      channels,
      backtestRule: createBacktest(counts),
      silences,
      maintenanceWindows,
      sendNotice: send,
      /** How notices went, by their ids. */
      deliveriesOf: deliveryLog.of,
    },
    /** Why alerts are not raised or notices not sent; null when all is well. */
    problem: async () => problemOf(await status(), Date.now()),
    evaluator,
    close: () => evaluator.close(),
  }
}

function openChannels({ entities, seal, log }: AlertingDeps): Channels {
  const records = entities.collection<Channel>('notification_channel', ChannelDoc, CHANNEL_BOUND)
  const channels = createChannels({ records, seal })
  warnOfUnreadable(channels, log)
  return channels
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
  silences: createSilences(
    entities.collection<Silence>('alert_silence', SilenceDoc, {
      most: MOST_QUIET,
      nouns: 'silences',
    }),
  ),
  maintenanceWindows: createMaintenanceWindows(
    entities.collection<MaintenanceWindow>('maintenance_window', WindowDoc, {
      most: MOST_QUIET,
      nouns: 'maintenance windows',
    }),
  ),
})
