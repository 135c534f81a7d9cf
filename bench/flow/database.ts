import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Corpus } from '../data/corpus.js'
import { LandingRows } from '../data/landing-rows.js'
import { type Engine, openEngine } from '../lib/engine.js'
import { startService } from '../lib/service.js'

export interface DatabaseOptions {
  readonly seed: number
  /** within the span; events beyond it are made at the same pace up to the present */
  readonly events: number
  readonly spanMs: number
  readonly sources: number
}

/** Kept beside the data: what was asked for, and how far it has come. */
interface Progress extends DatabaseOptions {
  readonly startMs: number
  /** events that are stored */
  readonly made: number
  /** where the block ends that may be stored already: it is sent again as it was, and taken once */
  readonly sending: number | null
}

const FILE = 'bench.json'
const BLOCK_EVENTS = 500_000
/** ids from 1 up to here are the generator's; the service goes on behind */
const OWN_IDS = 2 ** 40
const MERGE_POLL_MS = 1000
/** so many looks without a merge mean that the rest can wait */
const QUIET_POLLS = 3

/**
 * Fills a data directory with events up to the present, or goes on where it was interrupted: the blocks are
 * made here and stored by ClickHouse alone, in the columns, partitions and rollups that ingest would have
 * made over that time. Leaves out what a service on it must do by itself.
 *
 * @throws Error when the directory was made with other options
 */
export async function buildDatabase(dataDir: string, options: DatabaseOptions): Promise<void> {
  let progress = await openProgress(dataDir, options)
  const rows = new LandingRows(options.seed, options.sources)
  const engine = await openEngine(dataDir)
  try {
    if (progress.made === 0) await insertTemplates(engine, rows)
    // the second pass makes what became due during the first, and nothing of what becomes due in it
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

/** The next block is made while one is inserted. */
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

/** The next events that are due by then; null when there are none. */
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

/** Waits for the merges that are under way or due. */
async function settle(engine: Engine): Promise<void> {
  for (let quiet = 0; quiet < QUIET_POLLS;) {
    await sleep(MERGE_POLL_MS)
    const [[merges] = [0]] = await engine.rows(
      'SELECT count() FROM system.merges FORMAT JSONCompactEachRow',
    )
    quiet = merges === 0 ? quiet + 1 : 0
  }
}
