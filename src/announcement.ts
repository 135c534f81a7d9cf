import type { Config } from './config.js'
import type { App } from './app.js'

/** What a person reads when the program is ready. */
export function announcement(
  config: Config,
  { title, made, apiPort, collectorPort }: App & { readonly title: string },
): string {
  const shown = config.host === '0.0.0.0' || config.host === '::' ? '127.0.0.1' : config.host
  const at = (port: number | null): string | null =>
    port === null ? null : `http://${shown}:${port}`
  const [api, collector] = [at(apiPort), at(collectorPort)]
  return [
    title,
    '',
    ...ROLE_LINES[config.role],
    ...(api === null ? [] : [`  API        ${api}/api       docs  ${api}/docs`]),
    ...(collector === null ? [] : [`  collector  ${collector}/ingest`]),
    `  data       ${config.dataDir}`,
    ...aloneLines(config),
    '',
    ...credentials(config, made),
    ...example(config, made, { api, collector }),
    '',
  ].join('\n')
}

const ROLE_LINES = {
  all: [],
  api: ['  role       api: answers queries and takes uploads; events go to the collectors'],
  collector: ['  role       collector: takes events and webhooks; queries go to the others'],
} as const satisfies Record<Config['role'], readonly string[]>

/** Who shares a ClickHouse without a Redis loses what only the shared state can give. */
const aloneLines = (config: Config): readonly string[] =>
  config.clickhouseUrl === null || config.redisUrl !== null
    ? []
    : [
        '  alone      without REDIS_URL this must be the only instance on its ClickHouse database:',
        '             limits, webhook duplicates, deletions and corrections are not shared',
      ]

function credentials(config: Config, { admin, ingestKey }: App['made']): readonly string[] {
  const lines: string[] = []
  if (admin !== null) {
    const password = admin.password ?? '(as set in ADMIN_PASSWORD)'
    lines.push(`    admin       ${admin.email}   ${password}`)
  }
  if (ingestKey !== null) {
    const key = config.ingestKey === null ? ingestKey : '(as set in INGEST_KEY)'
    lines.push(`    ingest key  ${key}`)
  }
  return lines.length === 0 ? [] : ['  shown once, on this first start:', ...lines, '']
}

function example(
  config: Config,
  { ingestKey }: App['made'],
  { api, collector }: { readonly api: string | null; readonly collector: string | null },
): readonly string[] {
  if (collector === null || (ingestKey === null && api !== null))
    return ['  try it:', `    curl -s ${api}/api/monitoring/health`]
  if (ingestKey === null) return ['  try it:', `    curl -s ${collector}/health`]
  const key = config.ingestKey === null ? ingestKey : '$INGEST_KEY'
  return [
    '  try it:',
    `    curl -s ${collector}/ingest -H "Authorization: Bearer ${key}" ` +
      `-d '{"source":"demo","severity":"ERROR","message":"disk sda1 is 93% full"}'`,
  ]
}
