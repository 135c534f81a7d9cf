import { readFileSync } from 'node:fs'
import { createServer as createNetServer } from 'node:net'
import { resolve as resolvePath } from 'node:path'
import { setFlagsFromString } from 'node:v8'

import { backup } from './backup/backup.js'
import { restore } from './backup/restore.js'
import { migrateRemote, openApp, type App } from './app.js'
import { loadConfig, settingsHelp, type Config } from './config.js'
import { loadUws } from './http/uws.js'
import { ConfigError } from './lib/setting.js'
import { createLog, type Log } from './telemetry/log.js'

/** Requests in flight, unwritten rows and the shutdown of the embedded engine take less. */
const CLOSE_ALL_MS = 9_000

const packageJson = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { readonly name: string; readonly version: string } // our own file

const { version } = packageJson

async function start(config: Config, log: Log): Promise<App & { readonly title: string }> {
  const uws = loadUws(process.env)
  const { role, host, apiPort, collectorPort } = config
  if (role !== 'collector') await checkPort(host, apiPort, 'API_PORT')
  if (role !== 'api') await checkPort(host, collectorPort, 'COLLECTOR_PORT')
  const app = await openApp({ config, log, uws, version })
  const engine = app.isEmbedded ? 'embedded ClickHouse' : 'remote ClickHouse'
  return { ...app, title: `${packageJson.name} ${version} is ready (${engine}, ${uws.build})` }
}

/** Reports a port that is in use before anything else starts. */
const checkPort = (host: string, port: number, setting: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const probe = createNetServer()
    probe.once('error', (cause: NodeJS.ErrnoException) => {
      const reason = cause.code === 'EADDRINUSE' ? 'is in use' : `can't be used (${cause.code})`
      reject(new Error(`port ${port} on ${host} ${reason}; choose another with ${setting}`))
    })
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve()))
  })

function help(): string {
  const settings = settingsHelp().map(
    ({ env, fallback, doc }) =>
      `  ${env.padEnd(28)} ${doc}${fallback === '' ? '' : ` [${fallback}]`}`,
  )
  return [
    `${packageJson.name} ${packageJson.version}`,
    '',
    'Usage: npm start',
    '       npm run backup -- DIR     a backup of the running service into an empty directory',
    '       npm run restore -- DIR    an empty DATA_DIR from such a backup',
    '       node build/src/main.js --migrate    only brings the remote ClickHouse to the schema of this program',
    '',
    'Settings are environment variables:',
    ...settings,
    '',
  ].join('\n')
}

/**
 * Shuts down in order on the first SIGTERM or SIGINT, and exits at once on a second one. A process that is still
 * starting has acknowledged nothing, so it exits at once with its ClickHouse. The listeners are set first, because
 * process 1 of a container gets no signal without a listener.
 *
 * @returns sets the running app
 */
function endOnSignals(log: Log): (running: App) => void {
  let running: App | null = null
  let ending = false
  const end = (signal: NodeJS.Signals): void => {
    if (ending) process.exit(1)
    ending = true
    log.info({ signal }, 'stopping')
    if (running === null) process.exit(0)
    setTimeout(() => {
      log.warn('not everything ended in time; what was acknowledged is in the WAL')
      process.exit(0)
    }, CLOSE_ALL_MS).unref()
    running.close().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ err: error }, 'stopping failed')
        process.exit(1)
      },
    )
  }
  process.on('SIGTERM', end)
  process.on('SIGINT', end)
  return (now) => {
    running = now
  }
}

const fatal = (error: unknown): never => {
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(`${packageJson.name}: ${message}\n`)
  process.exit(1)
}

/** @returns whether the arguments name a command, which is then done */
async function runCommand(config: Config, log: Log): Promise<boolean> {
  const [command, given] = process.argv.slice(2)
  if (command === undefined) return false
  const run = command === 'backup' ? backup : command === 'restore' ? restore : null
  if (run === null || given === undefined) throw new Error(`unknown command ${command}; see --help`)
  const print = (text: string): void => void process.stdout.write(`${text}\n`)
  // npm changes the working directory; INIT_CWD is the caller's.
  const dir = resolvePath(process.env['INIT_CWD'] ?? '.', given)
  await run({ config, dir, program: packageJson.name, version, log, print })
  return true
}

async function main(): Promise<void> {
  // Few objects survive a request, so parallel collection costs more than it saves (bench/NOTES.md).
  setFlagsFromString('--no-parallel-scavenge')
  if (process.argv.includes('--help')) {
    process.stdout.write(help())
    return
  }
  // Files of this process and its children are readable by its user only.
  process.umask(0o077)
  const config = loadConfig(process.env)
  const log = createLog(config.logLevel)
  if (process.argv.includes('--migrate')) return await migrateRemote(config, log)
  process.on('unhandledRejection', (error) => {
    log.fatal({ err: error }, 'unexpected error')
    process.exit(1)
  })
  if (await runCommand(config, log)) return
  const tellRunning = endOnSignals(log)
  const running = await start(config, log)
  tellRunning(running)
  process.stdout.write(announcement(config, running))
}

/** What a person reads when the program is ready. */
function announcement(
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

/** Warns of an external ClickHouse without a Redis: instances would not share their state. */
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

await main().catch((error: unknown) => fatal(error instanceof ConfigError ? error.message : error))
