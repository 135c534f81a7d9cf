import { availableParallelism } from 'node:os'
import { checkListeners, LISTENER_SETTINGS } from './settings/listeners.js'
import {
  backupDisk,
  clusterName,
  collectorUrl,
  ingestKey,
  listenerKey,
  nodeUrls,
  quorum,
  timeZone,
} from './settings/values.js'
import { checkRetentionDays, maxDisk, retentionBySeverity } from './settings/retention.js'
import { ACCOUNT_SETTINGS } from './settings/accounts.js'
import { checkCold, COLD_SETTINGS } from './settings/cold.js'
import {
  attributes,
  boolean,
  choice,
  ConfigError,
  integer,
  limit,
  secret,
  type Setting,
  textSetting,
  url,
} from './settings/setting.js'

const MIB = 1024 * 1024

const SETTINGS = {
  nodeEnv: choice(
    'NODE_ENV',
    'development',
    ['development', 'production', 'test'],
    'production refuses unsafe combinations of settings',
  ),
  role: choice(
    'ROLE',
    'all',
    ['all', 'api', 'collector'],
    'ports that this instance opens: all = both, api = only the API, collector = only the collector',
  ),
  host: textSetting('HOST', '127.0.0.1', 'address all ports listen on'),
  apiPort: integer('API_PORT', 8000, [0, 65535], 'REST, WebSocket and docs; 0 = any free port'),
  collectorPort: integer('COLLECTOR_PORT', 8080, [0, 65535], 'ingest and webhooks; 0 = any'),
  collectorUrl,
  ...LISTENER_SETTINGS,
  dataDir: textSetting(
    'DATA_DIR',
    './data',
    'directory of the write-ahead log (WAL), generated secrets and the embedded ClickHouse',
  ),
  logLevel: choice(
    'LOG_LEVEL',
    'info',
    ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
    'log lines are JSON on stderr',
  ),
  environment: textSetting('ENVIRONMENT', 'production', 'environment of events that bring none'),
  defaultTimeZone: timeZone,

  clickhouseUrl: url(
    'CLICKHOUSE_URL',
    ['http:', 'https:'],
    'remote ClickHouse server; unset = embedded',
  ),
  clickhouseUser: textSetting('CLICKHOUSE_USER', 'default', 'user on the remote server'),
  clickhousePassword: secret('CLICKHOUSE_PASSWORD', 0, 'its password'),
  clickhouseDatabase: textSetting(
    'CLICKHOUSE_DATABASE',
    'logs',
    'database; created when it is missing',
  ),
  clickhouseCaFile: textSetting(
    'CLICKHOUSE_CA_FILE',
    '',
    'PEM file with the certificate authority of the remote server',
  ),
  clickhouseCluster: clusterName,
  clickhouseNodes: nodeUrls,
  clickhouseReplication: choice(
    'CLICKHOUSE_REPLICATION',
    'auto',
    ['auto', 'on', 'off'],
    'whether the tables of a cluster are replicated; auto = when it has a coordination service',
  ),
  clickhouseInsertQuorum: quorum,
  clickhouseBackupDisk: backupDisk,
  redisUrl: url(
    'REDIS_URL',
    ['redis:', 'rediss:'],
    'Redis for the state that instances share (`redis://:password@host:6379/0`, rediss for TLS); unset = in-process',
  ),
  allowPlaintext: boolean(
    'ALLOW_PLAINTEXT',
    false,
    'lets production connect to ClickHouse and Redis on other hosts without TLS, for a private network',
  ),
  redisPrefix: textSetting('REDIS_PREFIX', 'logs:', 'prefix of every Redis key'),

  ...ACCOUNT_SETTINGS,
  ingestKeysPerCreator: integer(
    'INGEST_KEYS_PER_CREATOR',
    10_000,
    [1, 1_000_000],
    'ingest keys that one user or API token may create',
  ),
  ingestKey,
  listenerKey,
  metricsToken: secret('METRICS_TOKEN', 16, 'bearer token with which other machines read /metrics'),
  webhookEnabled: boolean('WEBHOOK_ENABLED', true, 'whether /webhooks/scm accepts deliveries'),
  webhookSecret: secret(
    'WEBHOOK_SECRET',
    16,
    'key of the signature in X-Scm-Token; unset = every delivery gets 401',
  ),
  webhookSecretPrevious: secret(
    'WEBHOOK_SECRET_PREVIOUS',
    16,
    'previous webhook secret, accepted too during a rotation',
  ),
  maxConnections: integer(
    'MAX_CONNECTIONS',
    18_000,
    [100, 1_000_000],
    'open connections, all ports together; lowered to what the open-file limit allows',
  ),

  refreshLimit: limit('REFRESH_LIMIT', '30/60', 'token refreshes per address'),
  sourceCreateLimit: limit('SOURCE_CREATE_LIMIT', '30/60', 'source creates and uploads per user'),
  clearAllLimit: limit('CLEAR_ALL_LIMIT', '3/3600', 'clear-all per user'),
  apiTokenLimit: limit(
    'API_TOKEN_LIMIT',
    '1200/60',
    'requests and WebSocket connects per API token',
  ),
  wsLimiter: limit('WS_LIMITER', '30/60', 'WebSocket connects per address'),
  wsTokenInQuery: boolean(
    'WS_TOKEN_IN_QUERY',
    true,
    'whether a WebSocket may have its token in the URL, as clients on a command line do',
  ),
  wsMaxOpen: integer('WS_MAX_OPEN', 50, [1, 1_000_000], 'open WebSockets per address'),

  questionsPerUser: integer(
    'QUESTIONS_PER_USER',
    4,
    [1, 1_000],
    'searches, and other queries to ClickHouse, of one user that run at the same time; further ones wait',
  ),

  dedupWindowSeconds: integer(
    'DEDUP_WINDOW_SECONDS',
    60,
    [0, 86_400],
    'equal messages within this time are one event; 0 = every message is an event of its own',
  ),
  dedupIgnoreAttributes: attributes(
    'DEDUP_IGNORE_ATTRIBUTES',
    'names or paths of attributes (`req.id`), comma-separated, in which messages of one event may differ',
  ),
  dedupMaxEntries: integer(
    'DEDUP_MAX_ENTRIES',
    2_000_000,
    [1_000, 100_000_000],
    'messages in the deduplication window; 40 bytes each',
  ),
  retentionDays: integer(
    'RETENTION_DAYS',
    90,
    [1, 3650],
    'days after arrival when events are dropped; nothing is kept longer',
  ),
  retentionBySeverity,
  maxDisk,
  ...COLD_SETTINGS,
  maxMessageBytes: integer(
    'MAX_MESSAGE_BYTES',
    256 * 1024,
    [1024, 16 * MIB],
    'longer messages are dead-lettered, those of webhooks cut',
  ),
  insightsIntervalSeconds: integer(
    'INSIGHTS_INTERVAL_SECONDS',
    300,
    [0, 86_400],
    'time between two insight runs; 0 = only on request',
  ),
  insightsCpuPct: integer(
    'INSIGHTS_CPU_PCT',
    5,
    [1, 100],
    'percent of one core that insight runs may take; they run less often to stay below it',
  ),
  alertPrivateAddresses: boolean(
    'ALERT_PRIVATE_ADDRESSES',
    false,
    'whether notices of alert rules may be sent to private and loopback addresses',
  ),
  maxSources: integer(
    'MAX_SOURCES',
    100_000,
    [1, 10_000_000],
    'registered sources; messages of further ones are dead-lettered, and creating one gets 429',
  ),
  sourcesPerKey: integer(
    'SOURCES_PER_KEY',
    10_000,
    [1, 10_000_000],
    'sources that the messages of one ingest key may register; those of further ones are dead-lettered',
  ),
  applicationsPerCreator: integer(
    'APPLICATIONS_PER_CREATOR',
    10_000,
    [1, 1_000_000],
    'applications that one user or API token may create',
  ),
  workers: integer(
    'WORKERS',
    Math.max(1, Math.min(8, availableParallelism() - 1)),
    [1, 64],
    'worker threads that one sender may use at once',
  ),
  pipelineMaxBytes: integer(
    'PIPELINE_MAX_BYTES',
    96 * MIB,
    [20 * MIB, 4096 * MIB],
    'bytes of request bodies processed at one time; above it 429',
  ),
  walMaxBytes: integer(
    'WAL_MAX_BYTES',
    4096 * MIB,
    [64 * MIB, 1024 * 1024 * MIB],
    'size of the write-ahead log (WAL), the durable queue on disk; above it 429',
  ),
} as const satisfies Record<string, Setting<unknown>>

type Settings = typeof SETTINGS

export type Config = {
  readonly [Name in keyof Settings]: ReturnType<Settings[Name]['parse']>
}

/** The settings for `--help`; a test compares them with the guide's table. */
export const settingsHelp = (): readonly { env: string; fallback: string; doc: string }[] =>
  Object.values(SETTINGS).map(({ env, fallback, doc }) => ({ env, fallback, doc }))

type Env = Readonly<Record<string, string | undefined>>

/** @throws ConfigError that names every value that is wrong */
function parseAll(env: Env): Config {
  const problems: string[] = []
  const values = Object.entries(SETTINGS).map(([name, setting]) => {
    try {
      return [name, setting.parse(env[setting.env]?.trim() || setting.fallback)]
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      problems.push(error.message)
      return [name, null]
    }
  })
  if (problems.length > 0) throw new ConfigError(problems.join('\n'))
  return Object.fromEntries(values) as Config // each value comes from the parser under its key
}

/** Adds a problem if there is one. */
type Refuse = (wrong: boolean, problem: string) => void

function checkCombinations(config: Config, refuse: Refuse): void {
  checkListeners(config, refuse)
  refuse(
    config.cookieSamesite === 'None' && !config.cookieSecure,
    'COOKIE_SAMESITE=None needs COOKIE_SECURE=true: browsers drop such cookies otherwise',
  )
  refuse(
    config.clickhouseCluster !== '' && config.clickhouseUrl === null,
    'CLICKHOUSE_CLUSTER needs CLICKHOUSE_URL, the address of a server of the cluster',
  )
  refuse(
    config.clickhouseNodes.length > 0 && config.clickhouseCluster === '',
    'CLICKHOUSE_NODES needs CLICKHOUSE_CLUSTER, the name of the cluster they form',
  )
  refuse(
    config.cookieSamesite === 'None' && config.corsOrigins.length === 0,
    'COOKIE_SAMESITE=None is useless without CORS_ORIGINS: name the origins whose pages call with cookies',
  )
  checkCold(config, refuse)
  checkRetentionDays(config, refuse)
  checkProviders(config, refuse)
  checkSharing(config, refuse)
  if (config.nodeEnv === 'production') checkProduction(config, refuse)
}

function checkProviders(config: Config, refuse: Refuse): void {
  const { oidcProviders, publicUrl, passwordLoginOnly, allowPlaintext, nodeEnv } = config
  refuse(
    oidcProviders.length > 0 && publicUrl === '',
    'OIDC_PROVIDERS needs PUBLIC_URL, to which the providers send the browser back',
  )
  refuse(
    oidcProviders.length === 0 && passwordLoginOnly !== '',
    'PASSWORD_LOGIN_ONLY needs OIDC_PROVIDERS: nobody else could log in',
  )
  refuse(
    !allowPlaintext && oidcProviders.some(({ issuer }) => isPlaintextToOthers(issuer)),
    'OIDC_PROVIDERS has an issuer without https: who is in between could log in as anybody',
  )
  refuse(
    nodeEnv === 'production' && publicUrl.startsWith('http:'),
    'PUBLIC_URL without https is unsafe with NODE_ENV=production',
  )
}

function checkSharing({ role, clickhouseUrl, redisUrl, jwtSecret }: Config, refuse: Refuse): void {
  refuse(
    role !== 'all' && clickhouseUrl === null,
    `ROLE=${role} needs CLICKHOUSE_URL: the embedded ClickHouse can't be shared with other instances`,
  )
  refuse(
    role !== 'all' && redisUrl === null,
    `ROLE=${role} needs REDIS_URL: deletions, corrections and limits are shared through it`,
  )
  refuse(
    role !== 'collector' && clickhouseUrl !== null && redisUrl !== null && jwtSecret === null,
    'JWT_SECRET (32+ characters, the same for all) is required with CLICKHOUSE_URL and REDIS_URL: ' +
      "instances must accept each other's tokens",
  )
}

function checkProduction(config: Config, refuse: Refuse): void {
  const hasApi = config.role !== 'collector'
  refuse(
    hasApi && !config.cookieSecure,
    'COOKIE_SECURE=false is unsafe with NODE_ENV=production; set it to true',
  )
  refuse(
    hasApi && config.jwtSecret === null,
    'JWT_SECRET is required with NODE_ENV=production (32+ characters)',
  )
  refuse(
    config.role !== 'api' && config.webhookEnabled && config.webhookSecret === null,
    'WEBHOOK_SECRET is required with NODE_ENV=production (16+ characters), or set WEBHOOK_ENABLED=false',
  )
  refusePlaintext(config, refuse)
}

/** Without TLS passwords and events would cross the network in plain text. */
function refusePlaintext(config: Config, refuse: Refuse): void {
  if (config.allowPlaintext) return
  const { clickhouseUrl, clickhouseNodes, redisUrl, s3Url } = config
  const given = [
    ['CLICKHOUSE_URL', clickhouseUrl === null ? [] : [clickhouseUrl], 'https://'],
    ['CLICKHOUSE_NODES', clickhouseNodes, 'https://'],
    ['REDIS_URL', redisUrl === null ? [] : [redisUrl], 'rediss://'],
    ['S3_URL', s3Url === null ? [] : [s3Url], 'https://'],
  ] as const
  for (const [env, urls, safe] of given)
    refuse(
      urls.some(isPlaintextToOthers),
      `${env} is not encrypted and leads to another host, which is unsafe with NODE_ENV=production; ` +
        `use ${safe}, or set ALLOW_PLAINTEXT=true when nobody else is in that network`,
    )
}

function isPlaintextToOthers(text: string): boolean {
  const { protocol, hostname } = new URL(text)
  const isEncrypted = protocol === 'https:' || protocol === 'rediss:'
  return !isEncrypted && !/^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i.test(hostname)
}

/**
 * Reads and checks every setting.
 *
 * @throws ConfigError with a line for each value that is wrong, or for each combination that is unsafe
 */
export function loadConfig(env: Env): Config {
  const config = Object.freeze(parseAll(env))
  const problems: string[] = []
  checkCombinations(config, (wrong, problem) => {
    if (wrong) problems.push(problem)
  })
  if (problems.length > 0) throw new ConfigError(problems.join('\n'))
  return config
}
