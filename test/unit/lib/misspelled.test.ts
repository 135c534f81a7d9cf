import t from 'tap'
import { settingsHelp } from '../../../src/config.js'
import { misspelled } from '../../../src/lib/misspelled.js'

const SETTINGS = settingsHelp().map(({ env }) => env)

t.test('a name near to a setting is found with that setting', async (t) => {
  for (const [variable, setting] of [
    ['RETENTION_DAY', 'RETENTION_DAYS'],
    ['RETENTIONDAYS', 'RETENTION_DAYS'],
    ['api_port', 'API_PORT'],
    ['REDIS_URI', 'REDIS_URL'],
    ['WORKER', 'WORKERS'],
    ['DEDUP_WINDOW', 'DEDUP_WINDOW_SECONDS'],
    ['JWT_SECRET_FILE', 'JWT_SECRET'],
    ['MAX_WAL_BYTES', 'WAL_MAX_BYTES'],
  ] as const)
    t.same(misspelled([variable], SETTINGS), [{ variable, setting }], variable)
})

t.test('every setting with one letter too few is found', async (t) => {
  for (const setting of SETTINGS.filter((name) => name.length > 6)) {
    const [found] = misspelled([setting.slice(0, -1)], SETTINGS)
    t.ok(found !== undefined, setting)
  }
})

t.test('settings, and variables of the system and of other programs, are not', async (t) => {
  const others =
    'PATH HOME HOSTNAME LANG USER LOGNAME SHELL TERM PWD OLDPWD TZ PORT TMPDIR NODE_OPTIONS NODE_PATH NODE_VERSION ' +
    'INIT_CWD npm_config_cache npm_package_version KUBERNETES_SERVICE_HOST REDIS_SERVICE_HOST REDIS_PORT_6379_TCP ' +
    'CLICKHOUSE_SERVICE_PORT UWS_HTTP_MAX_HEADERS_SIZE LIBCHDB_PATH SSH_CLIENT XDG_DATA_DIRS DISPLAY EDITOR ROLE'
  t.same(misspelled([...others.split(' '), ...SETTINGS], SETTINGS), [])
})
