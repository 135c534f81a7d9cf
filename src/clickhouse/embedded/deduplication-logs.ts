import { appendFile, readFile, truncate } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { makeSynchronous } from './file-attributes.js'
import { coldDirOf, listTables, namesIn } from './table-directories.js'

/**
 * Repairs the deduplication logs that a killed engine left behind. Must not run beside an engine.
 *
 * ClickHouse writes the token of an insert into a table's deduplication log just before it moves the new part into
 * place, and it reads a log up to the first torn line. So there may be
 * - a token whose part is missing: the batch, sent again, would count as a duplicate, and its rows would be
 *   missing from that table permanently. Such a token is revoked;
 * - half a line: it and every later one would be forgotten at the next start, and batches counted twice. Such a
 *   line is removed.
 *
 * @returns the parts whose tokens were revoked
 */
export async function repairDeduplicationLogs(clickhouseDir: string): Promise<readonly string[]> {
  const repaired: string[] = []
  for (const tableDir of await listTables(clickhouseDir)) {
    const coldDir = join(coldDirOf(clickhouseDir), relative(clickhouseDir, tableDir))
    const found = await repairTable(tableDir, [tableDir, coldDir])
    if (found !== null) repaired.push(found)
  }
  return repaired
}

/**
 * Makes every write to the deduplication logs synchronous. ClickHouse syncs parts and not these logs: after a power failure
 * the token of a stored part could be gone, and its batch, sent again, would be counted twice. With this, a token is
 * on disk before its part is moved into place, and `repairDeduplicationLogs` revokes one whose part is missing.
 *
 * @returns false if the file system can't
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

/**
 * @param partDirs where the parts of the table are
 * @returns the part whose token was revoked, or null
 */
async function repairTable(tableDir: string, partDirs: readonly string[]): Promise<string | null> {
  const logs = await listLogs(join(tableDir, 'deduplication_logs'))
  const newest = logs.at(-1)
  if (newest === undefined) return null
  let records: readonly LogRecord[] = []
  // A log that has just been begun is empty.
  for (const log of logs.toReversed()) {
    records = await readLog(log)
    if (records.length > 0) break
  }
  const last = records.at(-1)
  if (last?.operation !== ADD || (await hasPart(partDirs, last.part))) return null
  // Inserts into a table go from the log to the part one after the other, so only the last one can be incomplete.
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

/** Reads the complete lines of a log and removes a torn one. */
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

/** Reads a part's name: `<partition>_<first block>_<last block>_<level>`, sometimes with `_<mutation>`. */
function rangeOf(name: string): PartRange | null {
  const match = /^([^_]+)_(\d+)_(\d+)_\d+(?:_\d+)?$/.exec(name)
  if (match === null) return null
  return { partition: match[1] ?? '', first: Number(match[2]), last: Number(match[3]) }
}

/** Whether a part, or one that it was merged into, is in place. */
async function hasPart(partDirs: readonly string[], part: string): Promise<boolean> {
  const wanted = rangeOf(part)
  if (wanted === null) return true
  const names = (await Promise.all(partDirs.map(namesIn))).flat()
  return names.some((name) => {
    const range = rangeOf(name)
    return (
      range?.partition === wanted.partition &&
      range.first <= wanted.first &&
      range.last >= wanted.last
    )
  })
}
