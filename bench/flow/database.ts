import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Corpus } from '../data/corpus.js'
import { LandingRows } from '../data/landing-rows.js'
import { type Engine, openEngine } from '../lib/engine.js'
import { startService } from '../lib/service.js'

export interface DatabaseOptions {
  readonly seed: number
  /** Events within the span; after it, events are generated at the same rate up to the present. */
  readonly events: number
  readonly spanMs: number
  readonly sources: number
}

/** The file beside the data with the options and the progress. */
interface Progress extends DatabaseOptions {
  readonly startMs: number
  /** Stored events. */
  readonly made: number
  /** The end of the block whose insert may have succeeded: it is sent again and deduplicated. */
  readonly sending: number | null
}

const FILE = 'bench.json'
const BLOCK_EVENTS = 500_000
/** The generator's ids are 1 up to this; the ids of the service follow. */
const OWN_IDS = 2 ** 40
const MERGE_POLL_MS = 1000
/** Consecutive polls without a merge after which merges count as ended. */
const QUIET_POLLS = 3

/**
 * Fills a data directory with events up to the present, or continues after an interruption. The blocks are generated
 * here and inserted into ClickHouse directly, with the columns, partitions and rollups of an ingestion over that time.
 * What a service creates at its start is left out.
 *
 * @throws Error when the directory was made with other options
 */
export async function buildDatabase(dataDir: string, options: DatabaseOptions): Promise<void> {
  let progress = await openProgress(dataDir, options)
  const rows = new LandingRows(options.seed, options.sources)
  const engine = await openEngine(dataDir)
  try {
    if (progress.made === 0) await insertTemplates(engine, rows)
    // The second pass generates the events that became due during the first.
    for (let pass = 1; pass <= 2; pass++)
      progress = await fillUpTo(Date.now(), engine, rows, { dataDir, progress })
    await settle(engine)
  } finally {
    await engine.stop()
  }
}

interface Filling {
  readonly dataDir: string
  readonly progress: Progress
}

/** Generates the next block while one is inserted. */
async function fillUpTo(
  endMs: number,
  engine: Engine,
  rows: LandingRows,
  filling: Filling,
): Promise<Progress> {
  let { progress } = filling
  let inserting = Promise.resolve(progress)
  for (let block = next(progress, endMs); block !== null;) {
    const bytes = makeBlock(rows, progress, block)
    progress = await inserting
    inserting = insertBlock(engine, rows, { ...filling, progress, block, bytes })
    block = next({ ...progress, made: block.until, sending: null }, endMs)
  }
  return await inserting
}

async function openProgress(dataDir: string, options: DatabaseOptions): Promise<Progress> {
  const file = join(dataDir, FILE)
  if (!existsSync(file)) {
    const service = await startService({ settings: {}, profileDir: null, dataDir })
    await service.stop()
    const progress = { ...options, startMs: Date.now() - options.spanMs, made: 0, sending: null }
    save(dataDir, progress)
    return progress
  }
  const kept: Progress = JSON.parse(readFileSync(file, 'utf8'))
  const progress: Progress = { ...kept, sending: kept.sending ?? null }
  const wanted = { ...progress, ...options }
  if (JSON.stringify(wanted) !== JSON.stringify(progress))
    throw new Error(`${file} is of other options: ${JSON.stringify(progress)}`)
  return progress
}

function save(dataDir: string, progress: Progress): void {
  const file = join(dataDir, FILE)
  writeFileSync(`${file}.new`, JSON.stringify(progress))
  renameSync(`${file}.new`, file)
}

interface Range {
  readonly from: number
  readonly until: number
}

const dueMs = ({ startMs, spanMs, events }: Progress, k: number): number =>
  startMs + Math.floor((k / events) * spanMs)

/** The next events that are due by a time; null for none. */
function next(progress: Progress, endMs: number): Range | null {
  const { startMs, spanMs, events, made, sending } = progress
  if (sending !== null) return { from: made, until: sending }
  const due = Math.floor(((endMs - startMs) / spanMs) * events)
  const until = Math.min(made + BLOCK_EVENTS, due)
  return until <= made ? null : { from: made, until }
}

function makeBlock(rows: LandingRows, progress: Progress, { from, until }: Range): Uint8Array {
  const startMs = dueMs(progress, from)
  const corpus = new Corpus({
    seed: progress.seed + from,
    events: until - from,
    startMs,
    spanMs: dueMs(progress, until) - startMs,
    sources: progress.sources,
  })
  return rows.block(corpus, 1 + from, (i) => dueMs(progress, from + i))
}

async function insertBlock(
  engine: Engine,
  rows: LandingRows,
  order: Filling & { readonly block: Range; readonly bytes: Uint8Array },
): Promise<Progress> {
  const { from, until } = order.block
  save(order.dataDir, { ...order.progress, sending: until })
  await engine.insert('landing', rows.columns, order.bytes, `bench:${from}:${until}`)
  const progress = { ...order.progress, made: until, sending: null }
  save(order.dataDir, progress)
  return progress
}

async function insertTemplates(engine: Engine, { templates }: LandingRows): Promise<void> {
  const text = (value: string): string =>
    `'${value.replaceAll('\\', '\\\\').replaceAll("'", String.raw`\'`)}'`
  const values = templates.map(
    (one) => `(${text(one.source)}, ${BigInt(`0x${one.id}`)}, 1, 0, ${text(one.text)})`,
  )
  await engine.rows(
    `INSERT INTO templates (source, template_id, version, redirect_to, text) VALUES ${values.join(', ')}`,
  )
  await engine.rows(
    `INSERT INTO id_blocks (first_id, end_id, owner) VALUES (1, ${OWN_IDS}, 'bench')`,
  )
}

/** Waits for running and due merges. */
async function settle(engine: Engine): Promise<void> {
  for (let quiet = 0; quiet < QUIET_POLLS;) {
    await sleep(MERGE_POLL_MS)
    const [[merges] = [0]] = await engine.rows(
      'SELECT count() FROM system.merges FORMAT JSONCompactEachRow',
    )
    quiet = merges === 0 ? quiet + 1 : 0
  }
}
