import { readBlock, type NativeBlock } from '../clickhouse/native-reader.js'
import { PRIORITIES, type Priority } from '../model/event.js'
import type { NumberedRecord, Piece, RowRange, RowTable } from './batch.js'
import type { Registration, SharedCommand, Command, TemplateRow } from '../wal/record.js'

/** A change, and the records that were written before it was known here. */
interface PendingChange extends SharedCommand {
  fromSeq: number
  readonly toSeq: number
}

/** What of some records is still to be stored. */
export interface StillWanted {
  readonly leftOut: readonly RowRange[]
  readonly templates: readonly TemplateRow[]
  readonly registrations: readonly Registration[]
  /** deleted sources that have newer rows here, and so are registered again */
  readonly again: readonly string[]
}

interface Examined {
  readonly leftOut: readonly RowRange[]
  /** sources of rows that stay, though the source was deleted: they came after that */
  readonly kept: ReadonlySet<string>
}

const NOTHING: Examined = { leftOut: [], kept: new Set() }

/**
 * Changes of other instances on the same database that rows in this WAL come before.
 *
 * A source may be deleted, or an event corrected, by another instance while rows that it concerns wait here. The rows
 * are stored as if they had come before the change: rows of a deleted source are left out, and repeats of a corrected
 * event count under its new priority. The change stands in the WAL behind those rows, so that it outlives the process
 * and every try of a batch leaves out the same rows.
 */
export class PendingChanges {
  #changes: PendingChange[] = []

  /** @param toSeq the record that holds the change; those before it are concerned */
  add(toSeq: number, command: SharedCommand): void {
    this.#changes.push({ ...command, toSeq })
  }

  has(id: string): boolean {
    return this.#changes.some((each) => each.id === id)
  }

  /** The change took effect without this instance: a batch that was being sent goes on without the rows too. */
  widen(id: string): void {
    for (const each of this.#changes) if (each.id === id) each.fromSeq = 0
  }

  /** Whether nothing that is sent from here on, the batch in hand included, holds what the change concerns. */
  covers(id: string, openBatch: { readonly from: number } | null): boolean {
    const found = this.#changes.find((each) => each.id === id)
    return found === undefined || openBatch === null || openBatch.from >= found.fromSeq
  }

  /** Everything up to `seq` is stored. */
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

  /** Repeats of events that were corrected count under the priority that they have now. */
  revise(pieces: readonly Piece[]): readonly Piece[] {
    return pieces.map((piece) => {
      const corrected = new Map<number, Priority>()
      for (const { change } of this.#concerning(piece.seq))
        if (change.kind === 'correct-event') corrected.set(change.event, change.priority)
      return corrected.size === 0 || piece.table !== 'landing' ? piece : recount(piece, corrected)
    })
  }

  /** Whether a later correction of the same event takes the place of this command. */
  isOvertaken(seq: number, command: Command): boolean {
    if (command.kind !== 'correct-event') return false
    return this.#concerning(seq).some(
      ({ change }) => change.kind === 'correct-event' && change.event === command.correction.id,
    )
  }

  #concerning(seq: number): readonly PendingChange[] {
    return this.#changes.filter((each) => each.fromSeq <= seq && seq < each.toSeq)
  }

  /** The record of the change itself may hold templates and registrations from before it. */
  #deletions(seq: number): readonly PendingChange[] {
    return this.#changes.filter(
      (each) => each.fromSeq <= seq && seq <= each.toSeq && each.change.kind !== 'correct-event',
    )
  }

  #examine(record: NumberedRecord): Examined {
    const deletions = this.#deletions(record.seq)
    if (deletions.length === 0) return NOTHING
    const landing = record.landing === null ? null : readBlock(record.landing)
    const dead = record.dead === null ? null : readBlock(record.dead)
    const kept = new Set<string>()
    const isGone = (block: NativeBlock, row: number): boolean => {
      const source = block.text('source', row) ?? ''
      const receivedMs = block.number('received_at', row) ?? 0
      const about = deletions.filter((each) => concerns(each, source))
      const gone = about.some(({ beforeMs }) => beforeMs === null || receivedMs < beforeMs)
      if (about.length > 0 && !gone) kept.add(source)
      return gone
    }
    // dead letters outlive their source, but not everything
    const cleared = deletions.filter(({ change }) => change.kind === 'clear-all')
    const isCleared = (block: NativeBlock, row: number): boolean =>
      cleared.some(
        ({ beforeMs }) => beforeMs === null || (block.number('received_at', row) ?? 0) < beforeMs,
      )
    return {
      leftOut: [
        ...runsOf(record.seq, 'landing', landing, isGone),
        ...runsOf(record.seq, 'dead_letters', dead, isCleared),
      ],
      kept,
    }
  }
}

const concerns = ({ change }: SharedCommand, source: string): boolean =>
  change.kind === 'clear-all' ||
  (change.kind === 'delete-sources' && change.sources.includes(source))

/** The rows that are left out, as runs. */
function runsOf(
  seq: number,
  table: RowTable,
  block: NativeBlock | null,
  isGone: (block: NativeBlock, row: number) => boolean,
): readonly RowRange[] {
  const runs: { seq: number; table: RowTable; from: number; to: number }[] = []
  for (let row = 0; row < (block?.rows ?? 0); row++) {
    if (block === null || !isGone(block, row)) continue
    const last = runs.at(-1)
    if (last?.to === row) last.to = row + 1
    else runs.push({ seq, table, from: row, to: row + 1 })
  }
  return runs
}

/** A row that begins an event stays as it is: the event's own row says what it was counted under. */
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
