import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { copyProgram, ROOT, type ProgramCopy } from './program.js'

/** An invariant that is broken in a copy of the built program, and the fault that must detect it. */
export interface Sabotage {
  readonly id: string
  readonly title: string
  readonly file: string
  readonly from: string
  readonly to: string
  readonly caughtBy: string
}

export const SABOTAGES: readonly Sabotage[] = [
  {
    id: 'ack-first',
    title: 'acknowledged before it is written and synced',
    file: 'wal/wal.js',
    from: 'await this.#commit(group);',
    to:
      'for (const write of group) if (write.kind === "record") write.resolve(); ' +
      'await new Promise((done) => setTimeout(done, 500)); await this.#commit(group);',
    caughtBy: 'kill-service',
  },
  {
    id: 'no-token',
    title: 'no deduplication token',
    file: 'clickhouse/client.js',
    from: 'insert_deduplication_token: token,',
    to: 'insert_deduplication_token: String(Math.random()),',
    caughtBy: 'reply-lost',
  },
  {
    id: 're-mixed',
    title: 'a batch is mixed with other rows when it is sent again',
    file: 'writer/writer.js',
    from: 'whole ?? wal.waiting, whole !== null',
    to: 'wal.waiting, false',
    caughtBy: 'reply-held',
  },
  {
    id: 'merged-unsynced',
    title: 'a merged part is not synced',
    file: 'clickhouse/embedded/config.js',
    from: '<min_rows_to_fsync_after_merge>1<',
    to: '<min_rows_to_fsync_after_merge>0<',
    caughtBy: 'power-cut-merged',
  },
]

type Change = Pick<Sabotage, 'id' | 'file' | 'from' | 'to'>

/** @throws Error when the built program has no such place, or several */
export function sabotagedText({ id, file, from, to }: Change): string {
  const text = readFileSync(join(ROOT, 'build', 'src', file), 'utf8')
  if (text.split(from).length !== 2) throw new Error(`${file} has no single place for ${id}`)
  return text.replace(from, to)
}

/** @returns the main file of a copy of the built program in which the invariant does not hold */
export function sabotagedMain(sabotage: Change): ProgramCopy {
  const copy = copyProgram(`sabotage-${sabotage.id}`)
  writeFileSync(join(copy.dir, 'build', 'src', sabotage.file), sabotagedText(sabotage))
  return copy
}
