import { readBlock, type NativeBlock } from '../clickhouse/native-reader.js'
import { PRIORITIES, type Priority } from '../model/event.js'
import type { NumberedRecord, Piece, RowRange, RowTable } from './batch.js'
import type { Registration, SharedCommand, Command, TemplateRow } from '../wal/record.js'

/** A change with the record that holds it. */
interface PendingChange extends SharedCommand {
  fromSeq: number
  readonly toSeq: number
  /** Whether the records before it are stored. */
  isReached: boolean
}

/** The part of some records that is still to be stored. */
export interface StillWanted {
  readonly leftOut: readonly RowRange[]
  readonly templates: readonly TemplateRow[]
  readonly registrations: readonly Registration[]
  /** Deleted sources with newer rows: they are registered again. */
  readonly again: readonly string[]
}

interface Examined {
  readonly leftOut: readonly RowRange[]
  /** Deleted sources with rows that were received after the deletion. */
  readonly kept: ReadonlySet<string>
}

const NOTHING: Examined = { leftOut: [], kept: new Set() }

/**
 * Changes of other instances that apply to rows in this WAL.
 *
 * A source may be deleted, or an event corrected, by another instance while rows that it concerns
 * wait here. The rows are stored as if they had come before the change: rows of a deleted source
 * are left out, and repeats of a corrected event count under its new priority. The change follows
 * those rows in the WAL, so that it outlives the process and every attempt at a batch leaves out
 * the same rows.
 */
export class PendingChanges {
  #changes: PendingChange[] = []

  /** @param toSeq the record that holds the change, which applies to the records before it */
  add(toSeq: number, command: SharedCommand): void {
    this.#changes.push({ ...command, toSeq, isReached: false })
  }

  has(id: string): boolean {
    return this.#changes.some((each) => each.id === id)
  }

  /** Extends a change that took effect without this instance to the batch that is being sent. */
  widen(id: string): void {
    for (const each of this.#changes) if (each.id === id) each.fromSeq = 0
  }

  /** Records that the records before the change are stored. */
  reach(id: string): void {
    for (const each of this.#changes) if (each.id === id) each.isReached = true
  }

  /** Whether the change applies to everything that is sent from now on, the open batch included. */
  covers(id: string, openBatch: { readonly from: number } | null): boolean {
    const found = this.#changes.find((each) => each.id === id)
    if (found?.change.kind === 'forget-repeats') return found.isReached
    return found === undefined || openBatch === null || openBatch.from >= found.fromSeq
  }

  /** Forgets the changes up to record `seq`, which is stored. */
  drop(seq: number): void {
    this.#changes = this.#changes.filter(({ toSeq }) => toSeq > seq)
  }

  stillWanted(records: readonly NumberedRecord[]): StillWanted {
    if (this.#changes.length === 0)
      return {
        leftOut: [],
        templates: records.flatMap((record) => record.templates),
        registrations: records.flatMap((record) => record.registrations),
        again: [],
      }
    const examined = records.map((record) => this.#examine(record))
    const kept = new Set(examined.flatMap((each) => [...each.kept]))
    const isWanted = (seq: number, source: string): boolean =>
      kept.has(source) || !this.#deletions(seq).some((each) => concerns(each, source))
    const registrations = records.flatMap((record) =>
      record.registrations.filter(({ name }) => isWanted(record.seq, name)),
    )
    return {
      leftOut: examined.flatMap((each) => each.leftOut),
      templates: records.flatMap((record) =>
        record.templates.filter(({ source }) => isWanted(record.seq, source)),
      ),
      registrations,
      again: [...kept],
    }
  }

  /** Counts repeats of corrected events under the corrected priority. */
  revise(pieces: readonly Piece[]): readonly Piece[] {
    return pieces.map((piece) => {
      const corrected = new Map<number, Priority>()
      for (const { change } of this.#concerning(piece.seq))
        if (change.kind === 'correct-event') corrected.set(change.event, change.priority)
      return corrected.size === 0 || piece.table !== 'landing' ? piece : recount(piece, corrected)
    })
  }

  /** Whether a later correction of the same event replaces this command. */
  isOvertaken(seq: number, command: Command): boolean {
    if (command.kind !== 'correct-event') return false
    return this.#concerning(seq).some(
      ({ change }) => change.kind === 'correct-event' && change.event === command.correction.id,
    )
  }

  #concerning(seq: number): readonly PendingChange[] {
    return this.#changes.filter((each) => each.fromSeq <= seq && seq < each.toSeq)
  }

  /** Includes the record of the change itself, which may contain templates and registrations from before it. */
  #deletions(seq: number): readonly PendingChange[] {
    return this.#changes.filter(
      (each) => each.fromSeq <= seq && seq <= each.toSeq && isDeletion(each),
    )
  }

  #examine(record: NumberedRecord): Examined {
    const deletions = this.#deletions(record.seq)
    if (deletions.length === 0) return NOTHING
    const landing = record.landing === null ? null : readBlock(record.landing)
    const dead = record.dead === null ? null : readBlock(record.dead)
    const kept = new Set<string>()
    const isDeleted = (block: NativeBlock, row: number): boolean => {
      const source = block.text('source', row) ?? ''
      const receivedMs = block.number('received_at', row) ?? 0
      const about = deletions.filter((each) => concerns(each, source))
      const deleted = about.some(({ beforeMs }) => beforeMs === null || receivedMs < beforeMs)
      if (about.length > 0 && !deleted) kept.add(source)
      return deleted
    }
    // The deletion of a source keeps its dead letters; `clear-all` deletes them.
    const cleared = deletions.filter(({ change }) => change.kind === 'clear-all')
    const isCleared = (block: NativeBlock, row: number): boolean =>
      cleared.some(
        ({ beforeMs }) => beforeMs === null || (block.number('received_at', row) ?? 0) < beforeMs,
      )
    return {
      leftOut: [
        ...rangesOf(record.seq, 'landing', landing, isDeleted),
        ...rangesOf(record.seq, 'dead_letters', dead, isCleared),
      ],
      kept,
    }
  }
}

const isDeletion = ({ change }: SharedCommand): boolean =>
  change.kind === 'delete-sources' || change.kind === 'clear-all'

const concerns = ({ change }: SharedCommand, source: string): boolean =>
  change.kind === 'clear-all' ||
  (change.kind === 'delete-sources' && change.sources.includes(source))

/** The deleted rows as ranges. */
function rangesOf(
  seq: number,
  table: RowTable,
  block: NativeBlock | null,
  isDeleted: (block: NativeBlock, row: number) => boolean,
): readonly RowRange[] {
  const ranges: { seq: number; table: RowTable; from: number; to: number }[] = []
  for (let row = 0; row < (block?.rows ?? 0); row++) {
    if (block === null || !isDeleted(block, row)) continue
    const last = ranges.at(-1)
    if (last?.to === row) last.to = row + 1
    else ranges.push({ seq, table, from: row, to: row + 1 })
  }
  return ranges
}

/** A row that begins an event is unchanged, because it states the priority under which the event was counted. */
function recount(piece: Piece, corrected: ReadonlyMap<number, Priority>): Piece {
  const block = readBlock(piece.bytes)
  if (block === null) return piece
  const priorities = new Map<number, number>()
  for (let row = 0; row < block.rows; row++) {
    const priority = corrected.get(block.number('id', row) ?? 0)
    if (priority !== undefined && block.number('is_new', row) !== 1)
      priorities.set(row, PRIORITIES.indexOf(priority))
  }
  return { ...piece, bytes: block.withBytes('priority', priorities) }
}
