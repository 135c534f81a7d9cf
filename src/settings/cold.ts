/** The settings of S3, the storage of old events and backups. */
import { fail, secret, textSetting, type Setting } from './setting.js'

const URL_ENV = 'S3_URL'
const DAYS_ENV = 'COLD_AFTER_DAYS'
const MAX_DAYS = 3650

/** The URL; ends with a slash. */
const s3Url: Setting<string | null> = {
  env: URL_ENV,
  fallback: '',
  doc: 'S3 of the embedded ClickHouse, with bucket and folder (`https://s3.eu-central-1.amazonaws.com/bucket/logs`): for COLD_AFTER_DAYS, and for backups',
  secret: false,
  parse: (value) => {
    if (value === '') return null
    const url = URL.canParse(value) ? new URL(value) : null
    if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '')
      return fail(URL_ENV, ' is not https://host/bucket/folder, without credentials and parameters')
    return url.href.endsWith('/') ? url.href : `${url.href}/`
  },
}

const coldAfterDays: Setting<number | null> = {
  env: DAYS_ENV,
  fallback: '',
  doc: 'days after arrival when events move to cold storage: S3_URL, or the disk `cold` of a remote ClickHouse; unset = never',
  secret: false,
  parse: (value) => {
    if (value === '') return null
    const days = /^\d{1,4}$/.test(value) ? Number(value) : Number.NaN
    return days >= 1 && days <= MAX_DAYS
      ? days
      : fail(DAYS_ENV, `=${value} is not an integer in 1..${MAX_DAYS}`)
  },
}

export const COLD_SETTINGS = {
  coldAfterDays,
  s3Url,
  s3AccessKeyId: secret('S3_ACCESS_KEY_ID', 3, 'access key of S3_URL'),
  s3SecretAccessKey: secret('S3_SECRET_ACCESS_KEY', 3, 'its secret'),
  s3Region: textSetting('S3_REGION', '', 'region of S3_URL, where its address does not say it'),
} as const satisfies Record<string, Setting<unknown>>

/** The bucket, and the folder in it. */
export interface S3 {
  /** The URL; ends with a slash. */
  readonly url: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** The region; '' for the one in the address. */
  readonly region: string
}

type ColdConfig = {
  readonly [Name in keyof typeof COLD_SETTINGS]: ReturnType<(typeof COLD_SETTINGS)[Name]['parse']>
}

/** @returns null when S3_URL is unset */
export function s3Of({
  s3Url: url,
  s3AccessKeyId,
  s3SecretAccessKey,
  s3Region,
}: ColdConfig): S3 | null {
  if (url === null) return null
  return {
    url,
    accessKeyId: s3AccessKeyId ?? '',
    secretAccessKey: s3SecretAccessKey ?? '',
    region: s3Region,
  }
}

interface Checked extends ColdConfig {
  readonly clickhouseUrl: string | null
  readonly clickhouseCluster: string
  readonly retentionDays: number
}

/** @param refuse reports a problem if there is one */
export function checkCold(
  config: Checked,
  refuse: (wrong: boolean, problem: string) => void,
): void {
  const { coldAfterDays: days, s3Url: url, clickhouseUrl, retentionDays } = config
  const hasKeys = config.s3AccessKeyId !== null && config.s3SecretAccessKey !== null
  refuse(url !== null && !hasKeys, 'S3_URL needs S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY')
  refuse(
    url !== null && clickhouseUrl !== null,
    'S3_URL is of the embedded ClickHouse: with CLICKHOUSE_URL, give that server a disk named cold',
  )
  refuse(
    days !== null && url === null && clickhouseUrl === null,
    'COLD_AFTER_DAYS needs S3_URL, where the events go',
  )
  refuse(
    days !== null && config.clickhouseCluster !== '',
    'COLD_AFTER_DAYS is not for a cluster (CLICKHOUSE_CLUSTER): events stay on the disks of its servers',
  )
  refuse(
    days !== null && days >= retentionDays,
    `COLD_AFTER_DAYS=${days ?? ''} is not below RETENTION_DAYS=${retentionDays}: events would be dropped before they move`,
  )
}
