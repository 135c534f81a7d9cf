import { appendFile, readFile, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { makeSynchronous } from './embedded/file-attributes.js'
import { listTables, namesIn } from './embedded/table-directories.js'

/**
 * ClickHouse writes the token of an insert into a table's deduplication log a moment before it moves the new
 * part into place, and it reads a log up to the first line that is torn. So an engine that was killed may
 * leave behind
 * - a token whose part is not there: the batch, offered again, would count as a duplicate, and its rows
 *   would be missing from that one table for ever;
 * - half a line: it and every later one would be forgotten at the next start, and batches counted twice.
 *
 * Takes such tokens back and cuts such lines off. Only while no engine runs on the directory.
 *
 * @returns the parts whose tokens were taken back
 */
export async function repairDeduplicationLogs(clickhouseDir: string): Promise<readonly string[]> {
  const repaired: string[] = []
  for (const tableDir of await listTables(clickhouseDir)) {
    const found = await repairTable(tableDir)
    if (found !== null) repaired.push(found)
  }
  return repaired
}

/**
 * ClickHouse syncs parts and not these logs: after a power cut the token of a part that is there may be gone,
 * and its batch, offered again, would be counted twice. From here on each token is on disk before its part is
 * moved into place; what a power cut leaves between the two is what `repairDeduplicationLogs` takes back.
 *
 * @returns false where the file system can't
 */
export async function syncDeduplicationLogs(clickhouseDir: string): Promise<boolean> {
  const paths: string[] = []
  for (const tableDir of await listTables(clickhouseDir)) {
    const dir = join(tableDir, 'deduplication_logs')
    const logs = await listLogs(dir)
    if (logs.length > 0) paths.push(dir, ...logs)
  }
  return makeSynchronous(paths)
}

const ADD = '1'
const DROP = '2'

interface LogRecord {
  readonly operation: string
  readonly part: string
  readonly token: string
}

/** @returns null when there is nothing to take back */
async function repairTable(tableDir: string): Promise<string | null> {
  const logs = await listLogs(join(tableDir, 'deduplication_logs'))
  const newest = logs.at(-1)
  if (newest === undefined) return null
  let records: readonly LogRecord[] = []
  // one that was begun a moment ago is empty
  for (const log of logs.toReversed()) {
    records = await readLog(log)
    if (records.length > 0) break
  }
  const last = records.at(-1)
  if (last?.operation !== ADD || (await hasPart(tableDir, last.part))) return null
  // inserts into a table take turns from the log to the part, so that only the last one can be cut off
  const tokens = records.filter(({ operation, part }) => operation === ADD && part === last.part)
  const lines = tokens.map(({ part, token }) => `${DROP}\t${part}\t${token}\n`)
  await appendFile(newest, lines.join(''))
  return last.part
}

async function listLogs(dir: string): Promise<readonly string[]> {
  const numberOf = (name: string): number =>
    Number(/^deduplication_log_(\d+)\.txt$/.exec(name)?.[1] ?? 0)
  const names = (await namesIn(dir)).filter((name) => numberOf(name) > 0)
  return names.toSorted((a, b) => numberOf(a) - numberOf(b)).map((name) => join(dir, name))
}

/** The whole lines of a log, and no others are left in it. */
async function readLog(path: string): Promise<readonly LogRecord[]> {
  const bytes = await readFile(path)
  const wholeBytes = bytes.lastIndexOf('\n') + 1
  if (wholeBytes < bytes.length) await truncate(path, wholeBytes)
  const lines = bytes.toString('latin1', 0, wholeBytes).split('\n').slice(0, -1)
  return lines.map((line) => {
    const [operation = '', part = '', token = ''] = line.split('\t')
    return { operation, part, token }
  })
}

interface PartRange {
  readonly partition: string
  readonly first: number
  readonly last: number
}

/** `<partition>_<first block>_<last block>_<level>`, and `_<mutation>` at times */
function rangeOf(name: string): PartRange | null {
  const match = /^([^_]+)_(\d+)_(\d+)_\d+(?:_\d+)?$/.exec(name)
  if (match === null) return null
  return { partition: match[1] ?? '', first: Number(match[2]), last: Number(match[3]) }
}

/** Whether a part, or one that it was merged into, is in its place. */
async function hasPart(tableDir: string, part: string): Promise<boolean> {
  const wanted = rangeOf(part)
  if (wanted === null) return true
  return (await namesIn(tableDir)).some((name) => {
    const range = rangeOf(name)
    return (
      range?.partition === wanted.partition &&
      range.first <= wanted.first &&
      range.last >= wanted.last
    )
  })
}
