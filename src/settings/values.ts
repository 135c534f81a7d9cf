import { isTimeZone } from '../model/time.js'
/** The settings whose values have a form of their own. */
import { fail, list, type Setting, textSetting } from './setting.js'

export const ingestKey: Setting<string | null> = {
  env: 'INGEST_KEY',
  fallback: '',
  doc: 'first ingest key, for unattended set-ups: 20 to 128 printable characters, no blanks',
  secret: true,
  parse: (value) => {
    if (value === '') return null
    if (/^[\x21-\x7e]{20,128}$/.test(value)) return value
    return fail('INGEST_KEY', ' needs 20 to 128 printable ASCII characters without blanks')
  },
}

export const listenerKey: Setting<string> = textSetting(
  'LISTENER_KEY',
  '',
  'name or first characters of the ingest key whose rights hold for listeners without keys; unset = the oldest',
)

export const email: Setting<string> = {
  ...textSetting(
    'ADMIN_EMAIL',
    'admin@localhost',
    'e-mail of the superadmin that the first start creates',
  ),
  parse: (value) => {
    if (/^[^\s@]{1,64}@[^\s@]{1,190}$/.test(value)) return value.toLowerCase()
    return fail('ADMIN_EMAIL', `=${value} is not an e-mail address`)
  },
}

const originSetting = (env: string, doc: string): Setting<string> => ({
  ...textSetting(env, '', doc),
  parse: (value) => {
    if (value === '') return ''
    const isOrigin = URL.canParse(value) && new URL(value).origin === value.replace(/\/$/, '')
    if (isOrigin && /^https?:/.test(value)) return new URL(value).origin
    return fail(env, `=${value} is not an address such as https://logs.example.com`)
  },
})

export const publicUrl = originSetting(
  'PUBLIC_URL',
  'address of the page (`https://logs.example.com`): notices of alert rules link to it, and providers of OIDC_PROVIDERS send the browser back to it',
)

export const collectorUrl = originSetting(
  'COLLECTOR_URL',
  'address of the collector that the page shows for senders (`https://logs.example.com`); unset = COLLECTOR_PORT, or behind HTTPS the address of the page',
)

export const passwordLoginOnly: Setting<string> = {
  ...textSetting(
    'PASSWORD_LOGIN_ONLY',
    '',
    'e-mail of the one account that may log in with a password, when all others log in at a provider; unset = every local one',
  ),
  parse: (value) => {
    if (value === '' || /^[^\s@]{1,64}@[^\s@]{1,190}$/.test(value)) return value.toLowerCase()
    return fail('PASSWORD_LOGIN_ONLY', `=${value} is not an e-mail address`)
  },
}

export const backupDisk: Setting<string> = {
  ...textSetting(
    'CLICKHOUSE_BACKUP_DISK',
    '',
    'disk of the remote server that `npm run backup` writes to (one of its backups.allowed_disk)',
  ),
  parse: (value) =>
    value === '' || /^[a-zA-Z_][a-zA-Z0-9_-]{0,99}$/.test(value)
      ? value
      : fail('CLICKHOUSE_BACKUP_DISK', ` is not a name of letters, digits, _ and -`),
}

export const clusterName: Setting<string> = {
  ...textSetting(
    'CLICKHOUSE_CLUSTER',
    '',
    'name of the cluster that holds the data, as in the remote_servers of the server',
  ),
  parse: (value) =>
    /^([a-zA-Z_][\w.-]{0,99})?$/.test(value)
      ? value
      : fail('CLICKHOUSE_CLUSTER', ` is not a name of letters, digits, _ . and -`),
}

export const nodeUrls: Setting<readonly string[]> = {
  ...list(
    'CLICKHOUSE_NODES',
    'HTTP addresses of all servers of the cluster, comma-separated; needed when neither ON CLUSTER nor their host names work',
  ),
  parse: (value) => {
    const items = list('CLICKHOUSE_NODES', '').parse(value)
    for (const item of items)
      if (!URL.canParse(item) || !/^https?:$/.test(new URL(item).protocol))
        fail('CLICKHOUSE_NODES', ' has an item that is not a URL starting with http:// or https://')
    return items
  },
}

export const quorum: Setting<string> = {
  ...textSetting(
    'CLICKHOUSE_INSERT_QUORUM',
    'auto',
    'replicas that must store an insert before it is confirmed; auto = the majority, 0 = only the one that received it',
  ),
  parse: (value) =>
    /^(auto|\d{1,2})$/.test(value)
      ? value
      : fail('CLICKHOUSE_INSERT_QUORUM', `=${value} is neither auto nor a number of replicas`),
}

export const timeZone: Setting<string> = {
  ...textSetting(
    'DEFAULT_TIME_ZONE',
    'UTC',
    'time zone of times without one, by its IANA name (Europe/Vienna)',
  ),
  parse: (value) =>
    isTimeZone(value)
      ? value
      : fail('DEFAULT_TIME_ZONE', `=${value} is no time zone; an example is Europe/Vienna`),
}
