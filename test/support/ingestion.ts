import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { openApp, type App } from '../../src/app.js'
import { loadConfig } from '../../src/config.js'
import { loadUws } from '../../src/http/uws.js'
import { PRIORITIES, SEVERITIES, type Priority, type Severity } from '../../src/model/event.js'
import { DAY_MS, HOUR_MS } from '../../src/model/time.js'
import { createLog } from '../../src/telemetry/log.js'
import type { Backend } from './cluster.js'
import { seeded } from './landing.js'
import { bodyOf, SUBMISSION } from './pipeline.js'

/** The app in this process, on a database of its own. */
export interface Rig extends Pick<
  App,
  | 'apiPort'
  | 'store'
  | 'pipeline'
  | 'wal'
  | 'writer'
  | 'services'
  | 'templateUpkeep'
  | 'retention'
  | 'close'
> {
  readonly walDir: string
  send(messages: readonly object[]): Promise<void>
  rows(sql: string): Promise<readonly Readonly<Record<string, unknown>>[]>
  /** The stored record of a source; null when there is none. */
  storedSource(name: string): Promise<Readonly<Record<string, unknown>> | null>
}

/** @param server null for an embedded engine, with the app as the only instance of its database */
export async function openRig(
  t: Test,
  server: (Pick<Backend, 'engine'> & Partial<Backend>) | null,
  env: Readonly<Record<string, string>> = {},
): Promise<Rig> {
  const dir = mkdtempSync(join(tmpdir(), 'counts-test-'))
  const config = loadConfig({
    DATA_DIR: dir,
    API_PORT: '0',
    COLLECTOR_PORT: '0',
    ...(server === null ? {} : connectionTo(server.engine)),
    CLICKHOUSE_DATABASE: `test_${randomBytes(6).toString('hex')}`,
    WORKERS: '1',
    ...server?.env,
    ...env,
  })
  const log = createLog('silent')
  const app = await openApp({ config, log, uws: loadUws({}), version: 'test' })
  const { store, pipeline } = app
  t.teardown(async () => {
    if (server !== null) await store.command(`DROP DATABASE ${config.clickhouseDatabase}`)
    await app.close()
    rmSync(dir, { recursive: true, force: true })
  })
  const rows: Rig['rows'] = (sql) => store.query({ name: 'test', sql }, {})
  return {
    ...app,
    walDir: join(dir, 'wal'),
    send: async (messages) => {
      const bytes = bodyOf(messages.map((message) => JSON.stringify(message)).join('\n'))
      const result = await pipeline.submit({ ...SUBMISSION, bytes })
      if (result.accepted !== messages.length) throw new Error(`accepted ${result.accepted}`)
    },
    rows,
    storedSource: async (name) => {
      const [row] = await rows(
        `SELECT doc FROM entities FINAL WHERE kind = 'source' AND id = '${name}'`,
      )
      return row === undefined ? null : JSON.parse(String(row['doc']))
    },
  }
}

const connectionTo = ({ url, username, password }: Backend['engine']) => ({
  CLICKHOUSE_URL: url,
  CLICKHOUSE_USER: username,
  CLICKHOUSE_PASSWORD: password,
})

export interface Sent {
  readonly source: string
  readonly message: string
  readonly severity: Severity
  readonly timestamp: string
}

const keyOf = ({ source, message }: Pick<Sent, 'source' | 'message'>): string =>
  `${source} ${message}`

/** Events of distinct texts over hours and days, with repeats within their minute. */
export function messagesOf(seed: number, events: number): readonly Sent[] {
  const random = seeded(seed)
  const pick = <T>(values: readonly [T, ...T[]]): T =>
    values[Math.floor(random() * values.length)] ?? values[0]
  const start = Date.now() - 5 * DAY_MS
  return Array.from({ length: events }, (_, i) => {
    const first = start + Math.floor(random() * 5 * 86_000_000)
    const one = {
      source: pick(['a', 'b', 'c']),
      message: `${pick(['login of', 'query', 'upload'])} number ${i} ${pick(['ok', 'late'])}`,
      severity: pick<Severity>(['DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL']),
    }
    const times = Array.from(
      { length: Math.floor(random() * 4) },
      () => first + Math.floor(random() * 59_000),
    )
    return [first, ...times].map((ms) => ({ ...one, timestamp: new Date(ms).toISOString() }))
  }).flat()
}

export const STEPS = { series_1s: 1, series_1m: 60, series_1h: 3600, series_1d: 86_400 } as const

/** Compares every table with the sent messages and the priorities of their events. */
export async function compare(t: Test, rig: Rig, sent: readonly Sent[]): Promise<void> {
  await rig.pipeline.settle()
  const events = await rig.rows(`
    SELECT id, source, message, toString(severity) AS severity, toString(priority) AS priority,
      lower(hex(template_id)) AS template, toUnixTimestamp64Milli(ts) AS ts FROM events ORDER BY id`)
  const byKey = new Map(
    events.map((event) => [
      keyOf({ source: String(event['source']), message: String(event['message']) }),
      event,
    ]),
  )
  t.equal(events.length, new Set(sent.map(keyOf)).size, 'an event each')
  t.equal(byKey.size, events.length)
  const perEvent = new Map<number, number>()
  for (const [table, step] of Object.entries(STEPS)) {
    const expected = new Map<string, number>()
    const add = (key: string): unknown => expected.set(key, (expected.get(key) ?? 0) + 1)
    for (const message of sent) {
      const event = byKey.get(keyOf(message))
      const bucket = Math.floor(Date.parse(message.timestamp) / 1000 / step) * step
      add(`${bucket} ${message.source} ${message.severity}`)
      add(`${bucket} ${message.source} ${String(event?.['priority'])}`)
      if (step === 1)
        perEvent.set(Number(event?.['id']), (perEvent.get(Number(event?.['id'])) ?? 0) + 1)
    }
    const counters = [...SEVERITIES, ...PRIORITIES]
    const rows = await rig.rows(`
      SELECT toUnixTimestamp(toDateTime(t, 'UTC')) AS bucket, source AS name,
        ${counters.map((name) => `sum(${table}.${name.toLowerCase()}) AS ${name}`).join(', ')}
      FROM ${table} GROUP BY bucket, name`)
    const found = new Map<string, number>()
    for (const row of rows)
      for (const name of counters)
        if (row[name] !== 0)
          found.set(`${Number(row['bucket'])} ${String(row['name'])} ${name}`, Number(row[name]))
    const different = [...new Set([...expected.keys(), ...found.keys()])].filter(
      (key) => expected.get(key) !== found.get(key),
    )
    t.same(different.slice(0, 5), [], table)
  }
  const counted = new Map<string, number>()
  for (const { timestamp, source, severity } of sent) {
    const key = `${Math.floor(Date.parse(timestamp) / HOUR_MS) * 3600} ${source} ${severity}`
    counted.set(key, (counted.get(key) ?? 0) + 1)
  }
  const hosts = await rig.rows(`
    SELECT toUnixTimestamp(t) AS bucket, source, toString(severity) AS severity, sum(host_stats.n) AS n
    FROM host_stats GROUP BY bucket, source, severity HAVING n != 0`)
  t.same(
    new Map(hosts.map((row) => [`${row['bucket']} ${row['source']} ${row['severity']}`, row['n']])),
    counted,
    'host_stats',
  )
  const shown = await Promise.all(
    events.slice(0, 40).map((event) => rig.services.events.get(Number(event['id']))),
  )
  t.same(
    shown.map((event) => event?.occurrenceCount),
    events.slice(0, 40).map((event) => perEvent.get(Number(event['id']))),
    'occurrences of single events',
  )
  for (const table of ['template_stats', 'template_totals']) {
    const [totals] = await rig.rows(`
      SELECT sum(${table}.events) AS events, sum(p1 + p2 + p3 + p4) AS counted,
        sum(debug + info + warning + error + critical) AS again,
        ${PRIORITIES.map((p) => `sum(${table}.${p.toLowerCase()}) AS ${p}`).join(', ')},
        toUnixTimestamp64Milli(min(first_ts)) AS first, toUnixTimestamp64Milli(max(last_ts)) AS last FROM ${table}`)
    const times = sent.map(({ timestamp }) => Date.parse(timestamp))
    const under = (priority: Priority): number =>
      sent.filter((message) => byKey.get(keyOf(message))?.['priority'] === priority).length
    t.same(
      totals,
      {
        events: events.length,
        counted: sent.length,
        again: sent.length,
        P1: under('P1'),
        P2: under('P2'),
        P3: under('P3'),
        P4: under('P4'),
        first: times.reduce((a, b) => Math.min(a, b)),
        last: times.reduce((a, b) => Math.max(a, b)),
      },
      table,
    )
  }
}
