import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { loadConfig, settingsHelp, type Config } from '../../src/config.js'
import { ConfigError } from '../../src/settings/setting.js'

type Env = Readonly<Record<string, string>>

const SECRETS = { JWT_SECRET: 'j'.repeat(32), WEBHOOK_SECRET: 'w'.repeat(16) }
const PRODUCTION = { NODE_ENV: 'production', COOKIE_SECURE: 'true', ...SECRETS }

/** name → env, what an unset one gives, texts with what they give, texts that stop the start */
type Case = readonly [
  keyof Config,
  string,
  unknown,
  readonly (readonly [string, unknown])[],
  readonly string[],
]
const GIVEN = {
  name: 'corp',
  issuer: 'https://id.example.com',
  client_id: 'logs',
  client_secret: 'a secret of the provider',
  roles: { 'log-admins': 'admin' },
}
const PROVIDER = {
  given: GIVEN,
  text: JSON.stringify([GIVEN]),
  value: {
    name: 'corp',
    title: 'corp',
    issuer: 'https://id.example.com',
    clientId: 'logs',
    clientSecret: 'a secret of the provider',
    scopes: 'openid email profile',
    roleClaim: 'groups',
    roles: { 'log-admins': 'admin' },
    defaultRole: null,
    linkByEmail: false,
    sessionHours: 12,
  },
}

const S3_KEYS = { S3_ACCESS_KEY_ID: 'key', S3_SECRET_ACCESS_KEY: 'secret' }

const CASES: readonly Case[] = [
  [
    'nodeEnv',
    'NODE_ENV',
    'development',
    [
      ['test', 'test'],
      ['TEST', 'test'],
    ],
    ['prod', 'x'],
  ],
  [
    'host',
    'HOST',
    '127.0.0.1',
    [
      ['0.0.0.0', '0.0.0.0'],
      [' ::1 ', '::1'],
    ],
    [],
  ],
  [
    'apiPort',
    'API_PORT',
    8000,
    [
      ['0', 0],
      ['65535', 65_535],
    ],
    ['65536', '-1', '80.5', 'http', '1e3'],
  ],
  [
    'collectorPort',
    'COLLECTOR_PORT',
    8080,
    [
      ['0', 0],
      ['9000', 9000],
    ],
    ['65536', '-1', '0x10'],
  ],
  ...(
    [
      ['otlpGrpcPort', 'OTLP_GRPC_PORT'],
      ['syslogPort', 'SYSLOG_PORT'],
      ['syslogTlsPort', 'SYSLOG_TLS_PORT'],
      ['gelfPort', 'GELF_PORT'],
      ['fluentPort', 'FLUENT_PORT'],
      ['linesPort', 'LINES_PORT'],
    ] as const
  ).map(([name, env]): Case => [
    name,
    env,
    null,
    [
      ['0', 0],
      ['5140', 5140],
    ],
    ['65536', '-1', 'syslog'],
  ]),
  ['tlsCertFile', 'TLS_CERT_FILE', '', [['/etc/tls/cert.pem', '/etc/tls/cert.pem']], []],
  ['tlsKeyFile', 'TLS_KEY_FILE', '', [['/etc/tls/key.pem', '/etc/tls/key.pem']], []],
  ['fluentSharedKey', 'FLUENT_SHARED_KEY', null, [['12345678', '12345678']], ['1234567']],
  [
    'listenerAllow',
    'LISTENER_ALLOW',
    [],
    [['10.0.0.0/8, ::1', ['10.0.0.0/8', '::1']]],
    ['web-1', '10.0.0.0/33'],
  ],
  ['dataDir', 'DATA_DIR', './data', [['/var/lib/logs', '/var/lib/logs']], []],
  [
    'logLevel',
    'LOG_LEVEL',
    'info',
    [
      ['debug', 'debug'],
      ['SILENT', 'silent'],
    ],
    ['verbose'],
  ],
  ['role', 'ROLE', 'all', [['ALL', 'all']], ['worker', 'api,collector']],
  ['environment', 'ENVIRONMENT', 'production', [['staging', 'staging']], []],
  [
    'defaultTimeZone',
    'DEFAULT_TIME_ZONE',
    'UTC',
    [['Europe/Vienna', 'Europe/Vienna']],
    ['Mars/Olympus', 'Europe Vienna'],
  ],
  [
    'clickhouseUrl',
    'CLICKHOUSE_URL',
    null,
    [
      ['http://ch:8123', 'http://ch:8123'],
      ['https://u@ch', 'https://u@ch'],
    ],
    ['tcp://ch:9000', 'ch:8123', 'clickhouse'],
  ],
  ['clickhouseUser', 'CLICKHOUSE_USER', 'default', [['logs', 'logs']], []],
  ['clickhousePassword', 'CLICKHOUSE_PASSWORD', null, [['x', 'x']], []],
  ['clickhouseDatabase', 'CLICKHOUSE_DATABASE', 'logs', [['other', 'other']], []],
  [
    'clickhouseCluster',
    'CLICKHOUSE_CLUSTER',
    '',
    [['logs_2', 'logs_2']],
    ["a'b", '1st', 'a b', 'x'.repeat(102)],
  ],
  [
    'clickhouseNodes',
    'CLICKHOUSE_NODES',
    [],
    [['http://a:8123, https://b', ['http://a:8123', 'https://b']]],
    ['a:8123', 'tcp://a:9000', 'http://a,b'],
  ],
  [
    'clickhouseReplication',
    'CLICKHOUSE_REPLICATION',
    'auto',
    [
      ['on', 'on'],
      ['OFF', 'off'],
    ],
    ['yes'],
  ],
  [
    'clickhouseInsertQuorum',
    'CLICKHOUSE_INSERT_QUORUM',
    'auto',
    [
      ['0', '0'],
      ['3', '3'],
    ],
    ['-1', 'all', '1.5'],
  ],
  [
    'clickhouseBackupDisk',
    'CLICKHOUSE_BACKUP_DISK',
    '',
    [['backups', 'backups']],
    ["a'b", 'a b', '9a', '../x'],
  ],
  ['clickhouseCaFile', 'CLICKHOUSE_CA_FILE', '', [['/ca.pem', '/ca.pem']], []],
  [
    'redisUrl',
    'REDIS_URL',
    null,
    [
      ['redis://r:6379/1', 'redis://r:6379/1'],
      ['rediss://r', 'rediss://r'],
    ],
    ['http://r', 'r:6379'],
  ],
  ['wsTokenInQuery', 'WS_TOKEN_IN_QUERY', true, [['no', false]], ['maybe']],
  ['allowPlaintext', 'ALLOW_PLAINTEXT', false, [['yes', true]], ['maybe']],
  ['redisPrefix', 'REDIS_PREFIX', 'logs:', [['a:', 'a:']], []],
  ['jwtSecret', 'JWT_SECRET', null, [['j'.repeat(32), 'j'.repeat(32)]], ['j'.repeat(31)]],
  ['dataKey', 'DATA_KEY', null, [['d'.repeat(32), 'd'.repeat(32)]], ['d'.repeat(31)]],
  [
    'accessTokenExpireMinutes',
    'ACCESS_TOKEN_EXPIRE_MINUTES',
    60,
    [
      ['1', 1],
      ['1440', 1440],
    ],
    ['0', '1441'],
  ],
  [
    'refreshTokenExpireDays',
    'REFRESH_TOKEN_EXPIRE_DAYS',
    7,
    [
      ['1', 1],
      ['90', 90],
    ],
    ['0', '91'],
  ],
  [
    'sessionExpireHours',
    'SESSION_EXPIRE_HOURS',
    720,
    [
      ['1', 1],
      ['87600', 87_600],
    ],
    ['0', '87601'],
  ],
  [
    'cookieSecure',
    'COOKIE_SECURE',
    false,
    [
      ['true', true],
      ['1', true],
      ['Yes', true],
      ['off', false],
      ['0', false],
    ],
    ['maybe', '2'],
  ],
  [
    'cookieSamesite',
    'COOKIE_SAMESITE',
    'Strict',
    [
      ['lax', 'Lax'],
      ['Strict', 'Strict'],
    ],
    ['loose'],
  ],
  [
    'corsOrigins',
    'CORS_ORIGINS',
    [],
    [
      ['https://a.example, http://b:81', ['https://a.example', 'http://b:81']],
      [',', []],
    ],
    ['*', 'https://a.example/', 'a.example', 'https://a.example,https://b.example/x'],
  ],
  [
    'trustedProxies',
    'TRUSTED_PROXIES',
    [],
    [['10.0.0.0/8, ::1', ['10.0.0.0/8', '::1']]],
    ['nonsense', '10.0.0.0/33', '10.0.0.0/8/8', '::1/129', '1.2.3.4/x'],
  ],
  [
    'adminEmail',
    'ADMIN_EMAIL',
    'admin@localhost',
    [['Ops@Example.com', 'ops@example.com']],
    ['ops', 'a b@c', '@x'],
  ],
  [
    'loginFailures',
    'LOGIN_FAILURES',
    { count: 100, seconds: 86_400 },
    [['5/3600', { count: 5, seconds: 3_600 }]],
    ['5', '0/60'],
  ],
  ['adminPassword', 'ADMIN_PASSWORD', null, [['12345678', '12345678']], ['1234567']],
  [
    'ingestKey',
    'INGEST_KEY',
    null,
    [
      ['k'.repeat(20), 'k'.repeat(20)],
      ['k'.repeat(128), 'k'.repeat(128)],
    ],
    ['k'.repeat(19), 'k'.repeat(129), `${'k'.repeat(10)} ${'k'.repeat(10)}`, 'ä'.repeat(20)],
  ],
  ['listenerKey', 'LISTENER_KEY', '', [['daemons', 'daemons']], []],
  ['metricsToken', 'METRICS_TOKEN', null, [['m'.repeat(16), 'm'.repeat(16)]], ['m'.repeat(15)]],
  ['webhookEnabled', 'WEBHOOK_ENABLED', true, [['no', false]], ['nope']],
  ['webhookSecret', 'WEBHOOK_SECRET', null, [['w'.repeat(16), 'w'.repeat(16)]], ['w'.repeat(15)]],
  [
    'webhookSecretPrevious',
    'WEBHOOK_SECRET_PREVIOUS',
    null,
    [['p'.repeat(16), 'p'.repeat(16)]],
    ['p'],
  ],
  [
    'loginLimit',
    'LOGIN_LIMIT',
    { count: 10, seconds: 60 },
    [['5/1', { count: 5, seconds: 1 }]],
    ['5', '0/60', '5/0', '5/m', '-1/5'],
  ],
  [
    'smtpUrl',
    'SMTP_URL',
    null,
    [['smtps://u:p@mail.example.com', 'smtps://u:p@mail.example.com']],
    ['mail.example.com', 'http://mail.example.com'],
  ],
  ['mailFrom', 'MAIL_FROM', 'log-analytics@localhost', [['a@b.c', 'a@b.c']], []],
  ['requireSecondFactor', 'REQUIRE_SECOND_FACTOR', 'none', [['admins', 'admins']], ['some']],
  ['temporaryPasswordHours', 'TEMPORARY_PASSWORD_HOURS', 168, [['24', 24]], ['0', 'x']],
  [
    'secondFactorLimit',
    'SECOND_FACTOR_LIMIT',
    { count: 100, seconds: 86_400 },
    [['5/1', { count: 5, seconds: 1 }]],
    ['5', '0/60'],
  ],
  [
    'refreshLimit',
    'REFRESH_LIMIT',
    { count: 30, seconds: 60 },
    [['1/9', { count: 1, seconds: 9 }]],
    ['x'],
  ],
  [
    'sourceCreateLimit',
    'SOURCE_CREATE_LIMIT',
    { count: 30, seconds: 60 },
    [['1/9', { count: 1, seconds: 9 }]],
    ['/'],
  ],
  [
    'clearAllLimit',
    'CLEAR_ALL_LIMIT',
    { count: 3, seconds: 3600 },
    [['1/9', { count: 1, seconds: 9 }]],
    ['3600'],
  ],
  ...(
    [
      ['publicUrl', 'PUBLIC_URL'],
      ['collectorUrl', 'COLLECTOR_URL'],
    ] as const
  ).map(([name, env]): Case => [
    name,
    env,
    '',
    [
      ['https://logs.example.com', 'https://logs.example.com'],
      ['http://localhost:8000/', 'http://localhost:8000'],
    ],
    ['logs.example.com', 'ftp://logs.example.com', 'https://logs.example.com/app?x'],
  ]),
  [
    'oidcProviders',
    'OIDC_PROVIDERS',
    [],
    [[PROVIDER.text, [PROVIDER.value]]],
    [
      '[]',
      '{}',
      'not json',
      ...[
        { name: 'A b' },
        { name: undefined },
        { issuer: 'id.example.com' },
        { issuer: 'http://id.example.com' },
        { client_id: '' },
        { roles: { ops: 'root' } },
        { roles: {} },
        { default_role: 'root' },
        { scopes: 'email' },
        { session_hours: 0 },
        { link_by_email: 'true' },
        { secret: 'a word that is not known' },
      ].map((wrong) => JSON.stringify([{ ...PROVIDER.given, ...wrong }])),
      JSON.stringify([PROVIDER.given, PROVIDER.given]),
    ],
  ],
  [
    'passwordLoginOnly',
    'PASSWORD_LOGIN_ONLY',
    '',
    [['Root@Example.com', 'root@example.com']],
    ['root'],
  ],
  [
    'apiTokenLimit',
    'API_TOKEN_LIMIT',
    { count: 1200, seconds: 60 },
    [['1/9', { count: 1, seconds: 9 }]],
    ['1200'],
  ],
  [
    'wsLimiter',
    'WS_LIMITER',
    { count: 30, seconds: 60 },
    [['1/9', { count: 1, seconds: 9 }]],
    ['30/'],
  ],
  [
    'maxConnections',
    'MAX_CONNECTIONS',
    18_000,
    [
      ['100', 100],
      ['1000000', 1_000_000],
    ],
    ['99', '1000001'],
  ],
  [
    'wsMaxOpen',
    'WS_MAX_OPEN',
    50,
    [
      ['1', 1],
      ['1000000', 1_000_000],
    ],
    ['0', '1000001'],
  ],
  [
    'questionsPerUser',
    'QUESTIONS_PER_USER',
    4,
    [
      ['1', 1],
      ['1000', 1000],
    ],
    ['0', '1001'],
  ],
  [
    'dedupWindowSeconds',
    'DEDUP_WINDOW_SECONDS',
    60,
    [
      ['0', 0],
      ['86400', 86_400],
    ],
    ['-1', '86401'],
  ],
  [
    'dedupIgnoreAttributes',
    'DEDUP_IGNORE_ATTRIBUTES',
    [],
    [
      ['req.id, took,,took', ['req.id', 'took']],
      [',', []],
    ],
    ['a'.repeat(129), Array.from({ length: 65 }, (_, i) => i).join()],
  ],
  ['dedupMaxEntries', 'DEDUP_MAX_ENTRIES', 2_000_000, [['1000', 1000]], ['999', '100000001']],
  [
    'retentionDays',
    'RETENTION_DAYS',
    90,
    [
      ['1', 1],
      ['3650', 3650],
    ],
    ['0', '3651'],
  ],
  [
    'retentionBySeverity',
    'RETENTION_DAYS_BY_SEVERITY',
    new Map(),
    [
      [
        'debug=3, INFO=14',
        new Map([
          ['DEBUG', 3],
          ['INFO', 14],
        ]),
      ],
    ],
    ['DEBUG', 'DEBUG=2', 'DEBUG=0', 'TRACE=3', 'DEBUG=3,DEBUG=7', 'DEBUG=3=3', 'DEBUG=180'],
  ],
  [
    'maxDisk',
    'MAX_DISK',
    { kind: 'share', share: 0.85 },
    [
      ['off', null],
      ['10%', { kind: 'share', share: 0.1 }],
      ['1000000', { kind: 'bytes', bytes: 1_000_000 }],
    ],
    ['9%', '100%', '85', '999999', '1 GB'],
  ],
  [
    'coldAfterDays',
    'COLD_AFTER_DAYS',
    null,
    [
      ['1', 1],
      ['89', 89],
    ],
    ['0', '-1', '3651', '1.5', 'week', '90'],
  ],
  [
    's3Url',
    'S3_URL',
    null,
    [
      ['https://s3.example.com/logs', 'https://s3.example.com/logs/'],
      ['http://127.0.0.1:9000/logs/a/', 'http://127.0.0.1:9000/logs/a/'],
    ],
    ['s3://logs', 'logs', 'https://key:secret@s3.example.com/logs', 'https://s3.example.com/?x=1'],
  ],
  ['s3AccessKeyId', 'S3_ACCESS_KEY_ID', null, [['AKIA1', 'AKIA1']], ['a']],
  ['s3SecretAccessKey', 'S3_SECRET_ACCESS_KEY', null, [['secret', 'secret']], ['s']],
  ['s3Region', 'S3_REGION', '', [['eu-central-1', 'eu-central-1']], []],
  [
    'maxMessageBytes',
    'MAX_MESSAGE_BYTES',
    262_144,
    [
      ['1024', 1024],
      ['16777216', 16_777_216],
    ],
    ['1023', '16777217'],
  ],
  ['insightsIntervalSeconds', 'INSIGHTS_INTERVAL_SECONDS', 300, [['0', 0]], ['-1', '86401']],
  ['insightsCpuPct', 'INSIGHTS_CPU_PCT', 5, [['100', 100]], ['0', '101']],
  ['alertPrivateAddresses', 'ALERT_PRIVATE_ADDRESSES', false, [['yes', true]], ['maybe']],
  ['usersPerCreator', 'USERS_PER_CREATOR', 100_000, [['1', 1]], ['0', '1000001']],
  ['ingestKeysPerCreator', 'INGEST_KEYS_PER_CREATOR', 10_000, [['1', 1]], ['0', '1000001']],
  ['applicationsPerCreator', 'APPLICATIONS_PER_CREATOR', 10_000, [['1', 1]], ['0', '1000001']],
  ['maxSources', 'MAX_SOURCES', 100_000, [['1', 1]], ['0', '10000001']],
  ['sourcesPerKey', 'SOURCES_PER_KEY', 10_000, [['1', 1]], ['0', '10000001']],
  [
    'workers',
    'WORKERS',
    undefined,
    [
      ['1', 1],
      ['64', 64],
    ],
    ['0', '65'],
  ],
  [
    'pipelineMaxBytes',
    'PIPELINE_MAX_BYTES',
    100_663_296,
    [['20971520', 20_971_520]],
    ['20971519', '4294967297'],
  ],
  [
    'walMaxBytes',
    'WAL_MAX_BYTES',
    4_294_967_296,
    [['67108864', 67_108_864]],
    ['67108863', '1099511627777'],
  ],
]

/** Settings that others need beside them. */
const BASES: Readonly<Record<string, Env>> = {
  COOKIE_SAMESITE: { COOKIE_SECURE: 'true', CORS_ORIGINS: 'https://a.example' },
  CLICKHOUSE_CLUSTER: { CLICKHOUSE_URL: 'http://ch:8123' },
  SYSLOG_TLS_PORT: { TLS_CERT_FILE: 'cert.pem', TLS_KEY_FILE: 'key.pem' },
  TLS_CERT_FILE: { TLS_KEY_FILE: 'key.pem' },
  TLS_KEY_FILE: { TLS_CERT_FILE: 'cert.pem' },
  OIDC_PROVIDERS: { PUBLIC_URL: 'https://logs.example.com' },
  PASSWORD_LOGIN_ONLY: { PUBLIC_URL: 'https://logs.example.com', OIDC_PROVIDERS: PROVIDER.text },
  CLICKHOUSE_NODES: { CLICKHOUSE_URL: 'http://ch:8123', CLICKHOUSE_CLUSTER: 'logs' },
  COLD_AFTER_DAYS: { S3_URL: 'https://s3.example.com/logs', ...S3_KEYS },
  S3_URL: S3_KEYS,
}

for (const [name, env, fallback, accepted, rejected] of CASES)
  void test(env, async (t) => {
    const base: Env = BASES[env] ?? {}
    if (fallback !== undefined) t.same(loadConfig({})[name], fallback, 'unset')
    t.same(loadConfig({ [env]: '' })[name], loadConfig({})[name], 'empty is unset')
    for (const [text, value] of accepted)
      t.same(loadConfig({ ...base, [env]: text })[name], value, text)
    for (const text of rejected) {
      const fault = t.throws(() => loadConfig({ ...base, [env]: text }), ConfigError, text)
      t.ok(fault instanceof Error && fault.message.startsWith(env), 'it names the setting')
      t.notOk(fault instanceof Error && fault.message.includes('\n'), 'in one line')
    }
  })

void test('every setting is tested here and listed in the help', async (t) => {
  const help = settingsHelp()
  t.same(help.map(({ env }) => env).toSorted(), CASES.map(([, env]) => env).toSorted())
  t.same(Object.keys(loadConfig({})).toSorted(), CASES.map(([name]) => name).toSorted())
  for (const { env, doc } of help) t.ok(doc.length > 5 && !doc.includes('\n'), env)
  for (const { env, fallback } of help)
    t.doesNotThrow(() => loadConfig(fallback === '' ? {} : { [env]: fallback }), env)
})

void test('a secret that is wrong is not repeated', async (t) => {
  for (const env of ['JWT_SECRET', 'ADMIN_PASSWORD', 'INGEST_KEY', 'WEBHOOK_SECRET']) {
    const fault = t.throws(() => loadConfig({ [env]: 'hunter2' }), ConfigError)
    t.notMatch(String(fault), /hunter2/)
  }
  for (const env of ['CLICKHOUSE_URL', 'REDIS_URL']) {
    const fault = t.throws(() => loadConfig({ [env]: 'ftp://me:hunter2@host' }), ConfigError)
    t.notMatch(String(fault), /hunter2/)
  }
})

void test('combinations that can not work or are unsafe stop the start', async (t) => {
  const refuses = (env: Env, setting: RegExp): void => {
    const fault = t.throws(() => loadConfig(env), ConfigError)
    t.match(String(fault), setting)
  }
  refuses({ API_PORT: '9000', COLLECTOR_PORT: '9000' }, /API_PORT and COLLECTOR_PORT/)
  t.doesNotThrow(() => loadConfig({ API_PORT: '0', COLLECTOR_PORT: '0' }))
  refuses({ SYSLOG_PORT: '8080' }, /COLLECTOR_PORT and SYSLOG_PORT are both 8080/)
  refuses({ SYSLOG_TLS_PORT: '6514' }, /SYSLOG_TLS_PORT needs TLS_CERT_FILE/)
  refuses({ TLS_CERT_FILE: 'cert.pem' }, /TLS_CERT_FILE needs TLS_KEY_FILE/)
  refuses({ SYSLOG_TLS_PORT: '6514', TLS_KEY_FILE: 'key.pem' }, /TLS_KEY_FILE needs TLS_CERT_FILE/)
  const open = { SYSLOG_PORT: '5140', HOST: '0.0.0.0' }
  refuses(open, /SYSLOG_PORT would take records .*LISTENER_ALLOW/)
  t.doesNotThrow(() => loadConfig({ ...open, LISTENER_ALLOW: '10.0.0.0/8' }))
  const fluent = { FLUENT_PORT: '24224', HOST: '0.0.0.0' }
  refuses(fluent, /FLUENT_PORT would take records/)
  t.doesNotThrow(() => loadConfig({ ...fluent, FLUENT_SHARED_KEY: 'a shared key' }))
  t.doesNotThrow(() => loadConfig({ ...open, HOST: '::1' }))
  t.doesNotThrow(() => loadConfig({ OTLP_GRPC_PORT: '4317', HOST: '0.0.0.0' }))
  refuses({ COOKIE_SAMESITE: 'None' }, /COOKIE_SECURE=true/)
  refuses({ COOKIE_SAMESITE: 'None', COOKIE_SECURE: 'true' }, /CORS_ORIGINS/)
  t.doesNotThrow(() => loadConfig(PRODUCTION))
  refuses({ CLICKHOUSE_CLUSTER: 'logs' }, /CLICKHOUSE_URL/)
  const s3 = { S3_URL: 'https://s3.example.com/logs', ...S3_KEYS }
  refuses({ S3_URL: s3.S3_URL }, /S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY/)
  refuses({ COLD_AFTER_DAYS: '7' }, /S3_URL/)
  refuses({ ...s3, CLICKHOUSE_URL: 'http://ch:8123' }, /a disk named cold/)
  refuses({ ...s3, COLD_AFTER_DAYS: '90' }, /RETENTION_DAYS=90/)
  const cluster = { CLICKHOUSE_URL: 'http://ch:8123', CLICKHOUSE_CLUSTER: 'logs' }
  refuses({ ...cluster, COLD_AFTER_DAYS: '7' }, /not for a cluster/)
  t.equal(
    loadConfig({ CLICKHOUSE_URL: 'http://ch:8123', COLD_AFTER_DAYS: '7' }).coldAfterDays,
    7,
    'a server has a disk of its own',
  )
  refuses({ CLICKHOUSE_URL: 'http://ch:8123', CLICKHOUSE_NODES: 'http://a' }, /CLICKHOUSE_CLUSTER/)
  refuses({ ...PRODUCTION, COOKIE_SECURE: 'false' }, /COOKIE_SECURE/)
  refuses({ ...PRODUCTION, JWT_SECRET: '' }, /JWT_SECRET/)
  refuses({ ...PRODUCTION, WEBHOOK_SECRET: '' }, /WEBHOOK_SECRET/)
  const shared = { CLICKHOUSE_URL: 'http://db:8123', REDIS_URL: 'redis://state' }
  const JWT_SECRET = 'x'.repeat(32)
  refuses(shared, /JWT_SECRET .* CLICKHOUSE_URL and REDIS_URL/)
  t.doesNotThrow(() => loadConfig({ ...shared, JWT_SECRET }))
  t.doesNotThrow(() => loadConfig({ ...shared, ROLE: 'collector' }))
  for (const ROLE of ['api', 'collector']) {
    refuses({ ROLE }, /ROLE=\w+ needs CLICKHOUSE_URL/)
    refuses({ ROLE, CLICKHOUSE_URL: shared.CLICKHOUSE_URL, JWT_SECRET }, /ROLE=\w+ needs REDIS_URL/)
    const ports = { API_PORT: '9000', COLLECTOR_PORT: '9000' }
    t.doesNotThrow(() => loadConfig({ ...shared, ROLE, JWT_SECRET, ...ports }), 'one is not opened')
  }
  const plain: readonly Env[] = [
    { CLICKHOUSE_URL: 'http://db:8123' },
    { REDIS_URL: 'redis://:password@state:6379' },
    { S3_URL: 'http://s3.example.com/logs', ...S3_KEYS },
    {
      CLICKHOUSE_URL: 'https://db:8443',
      CLICKHOUSE_CLUSTER: 'logs',
      CLICKHOUSE_NODES: 'https://db:8443,http://db2:8123',
    },
    { CLICKHOUSE_URL: 'http://127.0.0.1.example.com:8123' },
  ]
  for (const env of plain) {
    refuses({ ...PRODUCTION, ...env }, /(?:_URL|_NODES) is not encrypted .* ALLOW_PLAINTEXT=true/)
    t.doesNotThrow(() => loadConfig({ ...PRODUCTION, ...env, ALLOW_PLAINTEXT: 'true' }))
    t.doesNotThrow(() => loadConfig({ ...env, JWT_SECRET }), 'outside production')
  }
  const here = ['localhost', '127.0.0.1', '127.9.9.9', '[::1]']
  for (const host of here)
    t.doesNotThrow(() => loadConfig({ ...PRODUCTION, REDIS_URL: `redis://${host}:6379` }), host)
  t.doesNotThrow(() => loadConfig({ ...PRODUCTION, REDIS_URL: 'rediss://state' }))
  const NODE_ENV = 'production'
  const ALLOW_PLAINTEXT = 'true'
  refuses({ ...shared, NODE_ENV, JWT_SECRET, ROLE: 'api' }, /COOKIE_SECURE/)
  refuses({ ...shared, NODE_ENV, ROLE: 'collector' }, /WEBHOOK_SECRET/)
  t.doesNotThrow(() =>
    loadConfig({ ...shared, ...PRODUCTION, ALLOW_PLAINTEXT, WEBHOOK_SECRET: '', ROLE: 'api' }),
  )
  const WEBHOOK_SECRET = 'y'.repeat(16)
  t.doesNotThrow(() =>
    loadConfig({ ...shared, NODE_ENV, ALLOW_PLAINTEXT, ROLE: 'collector', WEBHOOK_SECRET }),
  )
  t.doesNotThrow(() => loadConfig({ ...PRODUCTION, WEBHOOK_SECRET: '', WEBHOOK_ENABLED: 'false' }))
})

void test('the settings do not change after the start', async (t) => {
  t.ok(Object.isFrozen(loadConfig({})))
})

const guide = new URL('../../../src/docs/operations.md', import.meta.url)

/** Rows `| \`NAME\` | default | meaning |` of the section "Settings". */
function settingsOfGuide(): readonly { env: string; fallback: string; doc: string }[] {
  const [, section = ''] = readFileSync(guide, 'utf8').split(/^#+ Settings\s*$/m)
  const [own = ''] = section.split(/^#+ /m)
  return [...own.matchAll(/^\| `([A-Z0-9_]+)` \| (.*?) \| (.*?) \|\s*$/gm)].map(
    ([, env = '', fallback = '', doc = '']) => ({
      env,
      fallback: fallback.replaceAll('`', '').trim(),
      doc: doc.replaceAll('\\|', '|').trim(),
    }),
  )
}

void test('the settings of the guide are those of the program', async (t) => {
  const ofCpus = (env: string, fallback: string): string => (env === 'WORKERS' ? '' : fallback)
  const plain = (rows: ReturnType<typeof settingsHelp>): string[] =>
    rows.map(({ env, fallback, doc }) => `${env} | ${ofCpus(env, fallback)} | ${doc}`).toSorted()
  t.same(plain(settingsOfGuide()), plain(settingsHelp()))
})

void test('all that is wrong is told at once, a line each', (t) => {
  const lines = (env: Env): readonly string[] => {
    try {
      loadConfig(env)
      return []
    } catch (error) {
      t.ok(error instanceof ConfigError)
      return String(Object(error).message).split('\n')
    }
  }
  t.match(lines({ API_PORT: 'x', LOG_LEVEL: 'loud', RETENTION_DAYS: '0' }), [
    /^API_PORT=x /,
    /^LOG_LEVEL=loud /,
    /^RETENTION_DAYS=0 /,
  ])
  const missing = lines({ NODE_ENV: 'production' })
  t.match(missing, [/^COOKIE_SECURE=false /, /^JWT_SECRET is /, /^WEBHOOK_SECRET is /])
  t.equal(missing.length, 3)
  t.same(lines(PRODUCTION), [])
  t.end()
})
