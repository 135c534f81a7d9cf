import type { Engine } from '../lib/engine.js'

export interface Growth {
  /** how many times as many there are to be, at least 1 */
  readonly factor: number
  /** the event times of the copies move around in this span */
  readonly startMs: number
  readonly spanMs: number
}

/** seconds between a copy's events and those of the copy before: prime, so that copies mix */
const SHIFT_S = 7919

/**
 * Multiplies the stored events by SQL, through the landing table and so into every rollup: each copy has
 * its own ids and times, and the texts of the first. For questions of size only.
 */
export async function growEvents(
  engine: Engine,
  { factor, startMs, spanMs }: Growth,
): Promise<void> {
  const columns = await columnsOf(engine, 'landing')
  const stored = new Set(await columnsOf(engine, 'events'))
  const [[endId]] = (await engine.rows(
    'SELECT toUInt64(max(end_id)) FROM id_blocks FORMAT JSONCompactEachRow',
  )) as [[number]]
  for (let copy = 1; copy < factor; copy++) {
    const shiftMs = (copy * SHIFT_S * 1000) % spanMs
    const own: Readonly<Record<string, string>> = {
      id: `id + ${copy * endId}`,
      is_new: '1',
      ts: `fromUnixTimestamp64Milli(${startMs} + (toUnixTimestamp64Milli(ts) - ${startMs} + ${shiftMs}) % ${spanMs})`,
    }
    const select = columns.map(
      (name) => own[name] ?? (stored.has(name) ? name : `defaultValueOfTypeName('String')`),
    )
    await engine.rows(
      `INSERT INTO landing (${columns.join(', ')}) SELECT ${select.join(', ')} FROM events WHERE id < ${endId}
       SETTINGS min_insert_block_size_rows = 1000000, min_insert_block_size_bytes = 0, max_insert_threads = 1, max_threads = 1`,
    )
  }
  await engine.rows(
    `INSERT INTO id_blocks (first_id, end_id, owner) VALUES (${endId}, ${endId * factor}, 'bench')`,
  )
}

async function columnsOf(engine: Engine, table: string): Promise<string[]> {
  const sql = `SELECT name FROM system.columns WHERE database = 'logs' AND table = '${table}' ORDER BY position FORMAT JSONCompactEachRow`
  return (await engine.rows(sql)).map(([name]) => String(name))
}
