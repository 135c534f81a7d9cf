import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Api, field, listField, numberField, textField } from './lib/api.js'
import { settingsOf, type BenchOptions } from './lib/options.js'
import { startService, type Target } from './lib/service.js'
import { HOUR_MS, DAY_MS } from '../src/model/time.js'

/** A log whose lines begin with their own times. */
interface LogFile {
  readonly source: string
  readonly path: string
}

interface Replayed extends LogFile {
  readonly lines: number
  readonly taken: number
}

/** A run reports the last five days, so runs this far apart report all. */
const STEP_MS = 4 * DAY_MS
/** An upload holds at most 10 MB and 200,000 rows. */
const PIECE_LINES = 20_000
const WRITTEN_MAX_MS = 120_000
const UNSEEN_MS = 10_000
const SHOWN = 12
const EPOCH = new Date(0).toISOString()

const SKIPPED = `replay: skipped, it needs --logs FOLDER of logs whose lines begin with their times
(NAME.log, or NAME.raw beside it, also one folder deeper, as in https://github.com/logpai/loghub)
`

/**
 * Uploads logs with their own times to a service (one of its own, or --target), makes insight runs
 * for every fourth day of them and for their ends, and prints the results.
 */
export async function replay(options: BenchOptions): Promise<void> {
  if (options.logs === null) {
    process.stdout.write(SKIPPED)
    return
  }
  const files = logsIn(options.logs)
  if (files.length === 0) throw new Error(`${options.logs} holds no NAME.log and no NAME.raw`)
  const settings = {
    ...settingsOf(options),
    INSIGHTS_INTERVAL_SECONDS: '0',
    SOURCE_CREATE_LIMIT: '1000/60',
  }
  const service =
    options.target === null ? await startService({ settings, profileDir: options.cpuProf }) : null
  const target = options.target ?? service
  if (target === null) throw new Error('bug: neither a target nor a service')
  try {
    const api = await Api.login(target)
    const replayed = await uploadAll(target, api, files)
    for (const each of replayed) await reportOn(api, each)
    api.close()
  } finally {
    await service?.stop()
    service?.discard()
  }
}

/** If there are NAME.raw and NAME.log, the former is used: the latter has messages without their heads. */
function logsIn(folder: string): readonly LogFile[] {
  const paths = readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory()
      ? readdirSync(join(folder, entry.name)).map((name) => join(folder, entry.name, name))
      : [join(folder, entry.name)],
  )
  const all = new Set(paths)
  return paths
    .filter((path) => path.endsWith('.raw') || (path.endsWith('.log') && !all.has(toRaw(path))))
    .map((path) => ({
      path,
      source: basename(path)
        .replace(/(_2k)?\.\w+$/, '')
        .toLowerCase(),
    }))
    .toSorted((a, b) => (a.path < b.path ? -1 : 1))
}

const toRaw = (path: string): string => path.replace(/\.log$/, '.raw')

async function uploadAll(
  target: Target,
  api: Api,
  files: readonly LogFile[],
): Promise<readonly Replayed[]> {
  const replayed: Replayed[] = []
  for (const file of files) {
    const lines = readFileSync(file.path, 'utf8').trimEnd().split('\n')
    let taken = 0
    for (let from = 0; from < lines.length; from += PIECE_LINES) {
      const text = lines.slice(from, from + PIECE_LINES).join('\n')
      taken += await upload(target, api.token, { source: file.source, text })
    }
    replayed.push({ ...file, lines: lines.length, taken })
  }
  for (const until = Date.now() + WRITTEN_MAX_MS; Date.now() < until; await sleep(100))
    if (await isWritten(target)) return replayed
  throw new Error(`accepted events are not written after ${WRITTEN_MAX_MS} ms`)
}

/** Without access to the metrics, it waits some seconds. */
async function isWritten({ api }: Target): Promise<boolean> {
  const reply = await fetch(`${api}/metrics`)
  const text = await reply.text()
  if (reply.status === 200) return /wal_records 0$/m.test(text)
  await sleep(UNSEEN_MS)
  return true
}

/** @returns the number of accepted events */
async function upload(
  { api }: Target,
  token: string,
  { source, text }: { readonly source: string; readonly text: string },
): Promise<number> {
  const form = new FormData()
  form.set('file_type', 'txt')
  form.set('source_name', source)
  form.set('file', new Blob([text]), `${source}.log`)
  const headers = { authorization: `Bearer ${token}` }
  for (;;) {
    const reply = await fetch(`${api}/api/sources/ephemeral`, {
      method: 'POST',
      headers,
      body: form,
    })
    const body: unknown = await reply.json()
    if (reply.status === 202) return numberField(body, 'events_processed')
    if (reply.status !== 429) throw new Error(`upload of ${source}: ${JSON.stringify(body)}`)
    await sleep(1000 * Number(reply.headers.get('retry-after') ?? 1))
  }
}

async function reportOn(api: Api, { source, path, lines, taken }: Replayed): Promise<void> {
  const span = await spanOf(api, source)
  if (span === null) {
    process.stdout.write(
      `\n${source}: none of ${lines} lines of ${basename(path)} became an event\n`,
    )
    return
  }
  const [firstMs, lastMs] = span
  const iso = (ms: number): string => new Date(ms).toISOString()
  for (let atMs = firstMs + STEP_MS; atMs < lastMs; atMs += STEP_MS) await refresh(api, iso(atMs))
  const snapshot = await refresh(api, iso(lastMs + HOUR_MS))
  const query = `source=${encodeURIComponent(source)}&limit=200`
  const known = listField(await api.json(`/api/ai-insights/anomalies?${query}`), 'items')
  const out = (text: string): void => void process.stdout.write(`${text}\n`)
  out(
    `\n${source}: ${taken} events of ${lines} lines of ${basename(path)}, ${iso(firstMs)} to ${iso(lastMs)}`,
  )
  const whole = known.filter((each) => field(each, 'part_of') === null)
  out(`  anomalies of all runs: ${known.length}, of them not part of another: ${whole.length}`)
  for (const each of whole.slice(0, SHOWN)) out(`    ${describeAnomaly(each)}`)
  const changes = listField(snapshot, 'emerging_templates')
  const own = changes.filter((each) => textField(each, 'source') === source)
  out(`  templates that changed on the last day: ${own.length}`)
  for (const each of own.slice(0, SHOWN)) out(`    ${describeChange(each)}`)
  const ids = new Set(known.map((each) => textField(each, 'id')))
  for (const each of listField(snapshot, 'correlations'))
    if (ids.has(textField(each, 'anomaly_id'))) out(`  ${describeCause(each)}`)
  const health = field(snapshot, 'health')
  const coverage = numberField(field(field(snapshot, 'forecast'), 'events'), 'coverage')
  out(`  forecast coverage ${coverage}, health ${JSON.stringify(health)}`)
}

const refresh = (api: Api, at: string): Promise<unknown> =>
  api.change('POST', `/api/ai-insights/snapshot/refresh?at=${at}`, {})

/** The day before the first event, and the time of the last one; null without events. */
async function spanOf(api: Api, source: string): Promise<readonly [number, number] | null> {
  const name = encodeURIComponent(source)
  const lastBefore = async (ms: number): Promise<number | null> => {
    const end = new Date(ms).toISOString()
    const page = await api.json(
      `/api/logs?source=${name}&limit=1&start_time=${EPOCH}&end_time=${end}`,
    )
    const [event] = listField(page, 'items')
    return event === undefined ? null : Date.parse(textField(event, 'timestamp'))
  }
  const last = await lastBefore(Date.now() + DAY_MS)
  if (last === null) return null
  let [before, after] = [0, last]
  while (after - before > DAY_MS) {
    const middle = Math.floor((before + after) / 2)
    const found = await lastBefore(middle)
    if (found === null) before = middle
    else after = found
  }
  return [before, last]
}

function describeAnomaly(each: unknown): string {
  const [least, most] = listField(each, 'expected_range')
  const what = textField(each, 'template_text') || textField(each, 'severity')
  const span = `${textField(each, 'started_at').slice(0, 16)} to ${textField(each, 'ended_at').slice(0, 16)}`
  return (
    `${span} ${textField(each, 'kind')} of ${textField(each, 'scope')} ${what}: ` +
    `${numberField(each, 'observed')}, ${String(least)} to ${String(most)} expected, score ${numberField(each, 'score')}`
  )
}

const describeChange = (each: unknown): string =>
  `${textField(each, 'change')} ${textField(each, 'severity')} "${textField(each, 'template_text')}": ` +
  `${numberField(each, 'count_24h')}, ${numberField(each, 'expected_24h')} expected`

const describeCause = (each: unknown): string =>
  `cause of ${textField(each, 'anomaly_id')}: ${(['templates', 'sources', 'hosts'] as const)
    .flatMap((part) => listField(each, part).slice(0, 2))
    .map(
      (part) =>
        `${textField(part, 'text') || textField(part, 'name')} (${numberField(part, 'explains')})`,
    )
    .join('; ')}`
