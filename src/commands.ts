import { existsSync } from 'node:fs'
import { join, resolve as resolvePath } from 'node:path'

import type { App, AppOptions } from './app.js'
import {
  requestAuditReport,
  requestPasswordReset,
  requestSecondFactorReset,
} from './backup/control.js'
import { checkConfiguredCluster, openDatabase } from './clickhouse/database.js'
import type { Config } from './config.js'
import { createExclusive, inTurn } from './coordination/lock.js'
import { openState } from './coordination/open-state.js'
import { refuseOtherOwner } from './coordination/owner.js'
import type { Log } from './telemetry/log.js'

export type CommandName =
  | 'backup'
  | 'restore'
  | 'verify-audit'
  | 'check-cluster'
  | 'reset-password'
  | 'reset-second-factor'

interface CommandOptions extends Omit<AppOptions, 'uws'> {
  /** Only a command that starts the service needs it. */
  readonly loadUws: () => AppOptions['uws']
  readonly program: string
  /** The argument; '' for a command without one. */
  readonly given: string
  /** The folder that the operator called from. */
  readonly callerDir: string
}

/**
 * Runs a command of the operator while the service runs, or in its place.
 *
 * @throws Error with the reason of a failure
 */
export async function runCommand(command: CommandName, options: CommandOptions): Promise<void> {
  const { config, log, version, program, given, callerDir } = options
  const print = (text: string): void => void process.stdout.write(`${text}\n`)
  const common = { config, program, version, log, print }
  const dir = resolvePath(callerDir, given)
  switch (command) {
    case 'backup': {
      const { backup, backupToS3, nameOnS3 } = await loadBackup()
      const name = nameOnS3(given)
      return name === null ? await backup({ ...common, dir }) : await backupToS3(common, name)
    }
    case 'restore': {
      const { nameOnS3, restore, restoreFromS3 } = await loadBackup()
      const name = nameOnS3(given)
      return name === null ? await restore({ ...common, dir }) : await restoreFromS3(common, name)
    }
    case 'verify-audit':
      return await verifyAudit(config, print)
    case 'check-cluster':
      if (!(await checkConfiguredCluster(config, log, print))) process.exitCode = 1
      return
    case 'reset-password': {
      const { email, password, isActive } = await onAccounts(
        options,
        () => requestPasswordReset(config.dataDir, given),
        (app) => app.resetPassword(given),
      )
      print(`${email}   ${password}`)
      print('The user is logged out everywhere. The password is shown once, and to be changed.')
      if (!isActive) print('The user is disabled: a superadmin has to enable them.')
      return
    }
    case 'reset-second-factor': {
      const email = await onAccounts(
        options,
        () => requestSecondFactorReset(config.dataDir, given),
        (app) => app.resetSecondFactor(given),
      )
      print(`${email} has no second factor any more, and is logged out everywhere.`)
    }
  }
}

const loadBackup = async () => ({
  ...(await import('./backup/backup.js')),
  ...(await import('./backup/restore.js')),
  ...(await import('./backup/s3-backup.js')),
})

/** Exits with 1 when the trail was changed. */
async function verifyAudit(config: Config, print: (text: string) => void): Promise<void> {
  const { entries, unchained, chains, problems } = await requestAuditReport(config.dataDir)
  for (const { writer, from, to, hash } of chains)
    print(`instance ${writer}: entries ${from} to ${to}, the last with hash ${hash}`)
  for (const problem of problems) print(`PROBLEM ${problem}`)
  if (unchained > 0)
    print(`${unchained} entries in no chain: of versions without chains, or inserted`)
  print(
    problems.length === 0
      ? `${entries - unchained} entries, all in their chains`
      : `${entries} entries; the trail was changed, or entries were lost`,
  )
  if (problems.length > 0) process.exitCode = 1
}

/**
 * Changes an account: by the service that runs on the data directory, else by one that is started
 * only for this, on any free ports of the loopback address.
 *
 * @param ask returns null when no service runs
 * @throws Error when there is no such user, or nothing to start
 */
async function onAccounts<T>(
  { config, log, version, loadUws }: CommandOptions,
  ask: () => Promise<T | null>,
  change: (app: App) => Promise<T>,
): Promise<T> {
  const running = await ask()
  if (running !== null) return running
  const { dataDir } = config
  const path = join(dataDir, 'instance-id')
  if (config.clickhouseUrl === null && !existsSync(path))
    throw new Error(`DATA_DIR ${dataDir} holds no users: set it as for the service`)
  const help = 'run this as that user, or while the service runs'
  refuseOtherOwner({ dataDir, path, help })
  const { openApp } = await import('./app.js')
  const ports = { host: '127.0.0.1', apiPort: 0, collectorPort: 0 }
  const app = await openApp({ log, version, uws: loadUws(), config: { ...config, ...ports } })
  try {
    return await change(app)
  } finally {
    await app.close()
  }
}

/** Brings a remote database to this program's schema and does nothing else; instances may run meanwhile. */
export async function migrateRemote(config: Config, log: Log): Promise<void> {
  if (config.clickhouseUrl === null)
    throw new Error(
      '--migrate needs CLICKHOUSE_URL; an embedded database is migrated at each start',
    )
  const state = await openState(config, null, log)
  const database = await openDatabase(config, { log })
  try {
    await database.reach()
    await inTurn(createExclusive(state), 'migrate', () => database.prepare())
  } finally {
    await database.close()
    await state.close()
  }
}
