import { readFileSync } from 'node:fs'
import { createServer as createNetServer, isIPv6 } from 'node:net'
import { setFlagsFromString } from 'node:v8'

import type { Accounts } from './api/auth/accounts.js'
import type { App } from './app.js'
import type { CommandName } from './commands.js'
import { loadConfig, settingsHelp, type Config } from './config.js'
import { openFileLimit } from './http/open-files.js'
import { portsOf } from './settings/listeners.js'
import { loadUws } from './http/uws.js'
import { misspelled } from './lib/misspelled.js'
import { createLog, type Log } from './telemetry/log.js'

/**
 * The time limit of a shutdown; requests in flight, unwritten rows and the embedded engine take
 * less.
 */
const CLOSE_ALL_MS = 9_000

const packageJson = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { readonly name: string; readonly version: string } // our own file

const { version } = packageJson

/** The first credentials; null where there were some before. */
type Made = Accounts['made']

interface Started extends App {
  readonly title: string
  readonly made: Made
}

async function start(config: Config, log: Log): Promise<Started> {
  const uws = loadUws(process.env)
  for (const [setting, port] of portsOf(config))
    if (port !== null) await checkPort(config.host, port, setting)
  // The module is loaded here, so that a failure to load is reported in one line.
  const { openApp } = await import('./app.js')
  let made: Made = { admin: null, ingestKey: null }
  const onMade = (now: Made): void => {
    made = now
  }
  const app = await openApp({ config, log, uws, version, onMade }).catch((error: unknown) => {
    process.stdout.write(credentials(config, made).join('\n'))
    throw error
  })
  const engine = app.isEmbedded ? 'embedded ClickHouse' : 'remote ClickHouse'
  return {
    ...app,
    made,
    title: `${packageJson.name} ${version} is ready (${engine}, ${uws.build})`,
  }
}

/** With a lower limit the program does not load, or its ClickHouse can't open its tables. */
const LEAST_OPEN_FILES = 256
/**
 * The address space that V8 reserves for a WebAssembly memory; the process ends where it can't be
 * reserved for a thread.
 */
const THREAD_ADDRESSES = 8 * 1024 ** 3
/**
 * The memories of the main thread, the miner, the encoder beyond `WORKERS`, and the rest of the
 * process.
 */
const OTHER_THREADS = 4

function refuseLowLimits({ workers }: Config): void {
  const files = openFileLimit()
  if (files !== null && files < LEAST_OPEN_FILES)
    throw new Error(
      `this process may open ${files} files, and needs ${LEAST_OPEN_FILES} at least: raise the limit (ulimit -n)`,
    )
  const addresses = addressLimit()
  const needed = (workers + OTHER_THREADS) * THREAD_ADDRESSES
  if (addresses < needed)
    throw new Error(
      `this process may have ${addresses} bytes of virtual memory, and reserves up to ${needed} for ` +
        `WORKERS=${workers} (it uses a small part): remove the limit (ulimit -v, LimitAS of systemd)`,
    )
}

/** Infinity where there is no limit, or where the system does not say (macOS has none). */
function addressLimit(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8')
    return Number(/^Max address space +(\d+)/m.exec(limits)?.[1] ?? Infinity)
  } catch {
    return Infinity
  }
}

/** Error codes of the system for an address that this machine does not have. */
const WRONG_HOST = new Set([
  'EADDRNOTAVAIL',
  'EAFNOSUPPORT',
  'EAI_AGAIN',
  'EAI_FAIL',
  'EINVAL',
  'ENOTFOUND',
])

/** Reports a port that is in use before anything else starts. */
const checkPort = (host: string, port: number, setting: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const probe = createNetServer()
    probe.once('error', ({ code = '' }: NodeJS.ErrnoException) => {
      const reason = code === 'EADDRINUSE' ? 'is in use' : `can't be used (${code})`
      const problem = WRONG_HOST.has(code)
        ? `HOST=${host} is no address of this machine (${code}); 127.0.0.1 is for this machine alone, 0.0.0.0 for all`
        : `port ${port} on ${host} ${reason}; choose another with ${setting}`
      reject(new Error(problem))
    })
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve()))
  })

/** The commands of an operator, with their arguments. */
const COMMANDS = {
  backup: {
    argument: 'DIR|s3:NAME',
    doc: 'a backup of the running service into an empty directory, or on S3_URL',
  },
  restore: { argument: 'DIR|s3:NAME', doc: 'fills an empty DATA_DIR from such a backup' },
  'check-cluster': {
    argument: '',
    doc: 'checks the cluster of CLICKHOUSE_… in databases of its own, which it drops',
  },
  'verify-audit': { argument: '', doc: 'verifies the audit trail of the running service' },
  'reset-password': { argument: 'E-MAIL', doc: 'a new password for a user, running or stopped' },
  'reset-second-factor': { argument: 'E-MAIL', doc: 'a user logs in with the password alone' },
} as const satisfies Record<CommandName, { readonly argument: string; readonly doc: string }>

const isCommand = (word: string): word is CommandName => Object.hasOwn(COMMANDS, word)

function usageOf(command: CommandName): string {
  const { argument } = COMMANDS[command]
  return `npm run ${command}${argument === '' ? '' : ` -- ${argument}`}`
}

function help(): string {
  const settings = settingsHelp().map(
    ({ env, fallback, doc }) =>
      `  ${env.padEnd(28)} ${doc}${fallback === '' ? '' : ` [${fallback}]`}`,
  )
  const commands = Object.keys(COMMANDS)
    .filter(isCommand)
    .map((command) => `       ${usageOf(command).padEnd(36)} ${COMMANDS[command].doc}`)
  return [
    `${packageJson.name} ${packageJson.version}`,
    '',
    'Usage: npm start',
    ...commands,
    "       npm start -- --demo                  fills an empty DATA_DIR with an hour of a shop's logs",
    '       npm start -- --migrate               only brings the remote ClickHouse to the schema of this program',
    '       npm start -- --version',
    '       npm start -- --help',
    '',
    'Settings are environment variables:',
    ...settings,
    '',
  ].join('\n')
}

/**
 * Shuts down in order on the first SIGTERM or SIGINT, and exits at once on a second one. A process
 * that is still starting has acknowledged nothing, so it exits at once with its ClickHouse. The
 * listeners are added first, because process 1 of a container gets no signal without a listener.
 *
 * @returns a function that sets the running app
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
  for (const line of message.split('\n')) process.stderr.write(`${packageJson.name}: ${line}\n`)
  process.exit(1)
}

/** The action that the arguments select. */
type Task =
  | { readonly kind: 'help' | 'version' | 'migrate' | 'start' | 'demo' }
  | { readonly kind: 'command'; readonly command: CommandName; readonly given: string }

const OPTIONS: Readonly<Record<string, Task>> = {
  '--help': { kind: 'help' },
  '-h': { kind: 'help' },
  '--version': { kind: 'version' },
  '-v': { kind: 'version' },
  '--migrate': { kind: 'migrate' },
  '--demo': { kind: 'demo' },
}

/** @throws Error with the usage */
function toTask(args: readonly string[]): Task {
  const option = args.find((arg) => Object.hasOwn(OPTIONS, arg))
  if (option !== undefined) return OPTIONS[option] ?? { kind: 'help' }
  const [command, given = '', ...others] = args
  if (command === undefined) return { kind: 'start' }
  if (!isCommand(command)) throw new Error(`unknown argument ${command}; see npm start -- --help`)
  const isComplete = (given === '') === (COMMANDS[command].argument === '')
  if (!isComplete || others.length > 0) throw new Error(`usage: ${usageOf(command)}`)
  return { kind: 'command', command, given }
}

async function main(): Promise<void> {
  // Without a listener Node.js opens its inspector, which runs any code that a client of its port
  // sends.
  process.on('SIGUSR1', () => undefined)
  // Few objects survive a request, so parallel collection costs more than it saves (bench/NOTES.md).
  setFlagsFromString('--no-parallel-scavenge')
  const task = toTask(process.argv.slice(2))
  if (task.kind === 'help') return void process.stdout.write(help())
  if (task.kind === 'version')
    return void process.stdout.write(`${packageJson.name} ${packageJson.version}\n`)
  // Files of this process and its children are readable by its user only.
  process.umask(0o077)
  const config = loadConfig(process.env)
  const log = createLog(config.logLevel)
  refuseLowLimits(config)
  const settings = settingsHelp().map(({ env }) => env)
  for (const { variable, setting } of misspelled(Object.keys(process.env), settings))
    log.warn({}, `${variable} is no setting and has no effect; did you mean ${setting}?`)
  process.on('unhandledRejection', (error) => {
    log.fatal({ err: error }, 'unexpected error')
    process.exit(1)
  })
  switch (task.kind) {
    case 'migrate':
      return await (await import('./commands.js')).migrateRemote(config, log)
    case 'command':
      return await (
        await import('./commands.js')
      ).runCommand(task.command, {
        config,
        log,
        version,
        loadUws: () => loadUws(process.env),
        program: packageJson.name,
        given: task.given,
        // npm changes the working directory; INIT_CWD is the caller's.
        callerDir: process.env['INIT_CWD'] ?? '.',
      })
    case 'start':
    case 'demo':
      return await serve(config, log, task.kind === 'demo')
  }
}

async function serve(config: Config, log: Log, isDemo: boolean): Promise<void> {
  if (isDemo && config.role !== 'all') throw new Error('--demo needs a process with ROLE=all')
  const tellRunning = endOnSignals(log)
  const running = await start(config, log)
  tellRunning(running)
  process.stdout.write(announcement(config, running))
  if (isDemo) process.stdout.write(`${await fillDemo(config, running)}\n\n`)
}

/** @returns its description for the operator */
async function fillDemo(config: Config, { services, collectorPort }: App): Promise<string> {
  const { fillWithDemo } = await import('./demo/demo.js')
  const filled = await fillWithDemo(
    {
      collector: addressOf(config, collectorPort) ?? '',
      isEmpty: async () => (await services.sourceStats.totals(null)).size === 0,
      newKey: async () => {
        const { stored, key } = await services.ingestKeys.create({
          name: 'demo',
          sources: null,
          autoRegister: true,
          defaultSource: null,
        })
        return { key, release: () => services.ingestKeys.remove(stored.id) }
      },
    },
    Date.now(),
  )
  if (filled === null)
    return '  demo       there are events already, so none were added; it fills an empty DATA_DIR only'
  return [
    `  demo       ${filled} messages of the last hour of a shop; find out why checkouts failed in eu-west`,
    '             removed, with everything else, by DELETE /api/monitoring/clear-all (docs/api)',
  ].join('\n')
}

/** The address of a port for a browser on this machine. */
const addressOf = (config: Config, port: number | null): string | null =>
  port === null ? null : `http://${shownHost(config)}:${port}`

function shownHost({ host }: Config): string {
  const shown = ANY_HOST[host] ?? host
  return isIPv6(shown) ? `[${shown}]` : shown
}

/** The text that the program prints when it is ready. */
function announcement(
  config: Config,
  { title, made, apiPort, collectorPort, listenerPorts }: Started,
): string {
  const [api, collector] = [addressOf(config, apiPort), addressOf(config, collectorPort)]
  return [
    title,
    '',
    ...ROLE_LINES[config.role],
    ...(api === null
      ? []
      : [`  page       ${api}/`, `  API        ${api}/api       docs  ${api}/docs`]),
    ...(collector === null ? [] : [`  collector  ${collector}/ingest`]),
    ...[...listenerPorts].map(
      ([setting, port]) =>
        `  ${(NAMES[setting] ?? setting).padEnd(NAME_CHARS)}${shownHost(config)}:${port}`,
    ),
    `  data       ${config.dataDir}`,
    ...aloneLines(config),
    '',
    ...credentials(config, made),
    ...example(config, made, { api, collector }),
    '',
  ].join('\n')
}

/** The names of the listeners, by setting. */
const NAMES: Readonly<Record<string, string>> = {
  OTLP_GRPC_PORT: 'OTLP/gRPC',
  SYSLOG_PORT: 'syslog',
  SYSLOG_TLS_PORT: 'syslog TLS',
  GELF_PORT: 'GELF',
  FLUENT_PORT: 'Forward',
  LINES_PORT: 'lines',
}
/** The width of the names before the addresses. */
const NAME_CHARS = 11

/** Values of HOST that mean every address of the machine, each with the address to show. */
const ANY_HOST: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '127.0.0.1' }

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

function credentials(config: Config, { admin, ingestKey }: Made): readonly string[] {
  const lines: string[] = []
  if (admin !== null) {
    const password = admin.password ?? '(as set in ADMIN_PASSWORD)'
    lines.push(`    admin       ${admin.email}   ${password}`)
    if (admin.password !== null && config.nodeEnv === 'production')
      lines.push('                to be changed: PUT /api/users/{id}/password')
  }
  if (ingestKey !== null) {
    const key = config.ingestKey === null ? ingestKey : '(as set in INGEST_KEY)'
    lines.push(`    ingest key  ${key}`)
  }
  return lines.length === 0 ? [] : ['  shown once, on this first start:', ...lines, '']
}

function example(
  config: Config,
  { ingestKey }: Made,
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

await main().catch(fatal)
