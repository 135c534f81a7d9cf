import { readBlock, type NativeBlock } from '../clickhouse/native-reader.js'
import { PRIORITIES, type Priority } from '../model/event.js'
import type { NumberedParts, Piece, RefusedRows, RowTable } from './amendment.js'
import type { Registration, SharedStatement, Statement, TemplateRow } from '../wal/record.js'

/** A change, and the entries that were written before it was known here. */
interface Held extends SharedStatement {
  fromSeq: number
  readonly toSeq: number
}

/** What of some entries is still to be stored. */
export interface StillWanted {
  readonly leftOut: readonly RefusedRows[]
  readonly templates: readonly TemplateRow[]
  readonly registrations: readonly Registration[]
  /** deleted sources that have newer rows here, and so are registered again */
  readonly again: readonly string[]
}

interface Looked {
  readonly leftOut: readonly RefusedRows[]
  /** sources of rows that stay, though the source was deleted: they came after that */
  readonly kept: ReadonlySet<string>
}

const NOTHING: Looked = { leftOut: [], kept: new Set() }

/**
 * What other instances deleted or corrected while rows that it concerns waited in this one's wal. The rows
 * go out as if it had come before them: without those of a source that is gone, and repeats of a corrected
 * event under its new priority. The change stands in the WAL too, behind the rows, so that it outlives the
 * process; the same rows are left out of each try of a batch.
 */
export class Unsent {
  #held: Held[] = []

  /** @param toSeq the entry that holds the change; those before it are concerned */
  add(toSeq: number, statement: SharedStatement): void {
    this.#held.push({ ...statement, toSeq })
  }

  has(id: string): boolean {
    return this.#held.some((held) => held.id === id)
  }

  /** The change took effect without this instance: a batch that was being sent goes on without the rows too. */
  widen(id: string): void {
    for (const held of this.#held) if (held.id === id) held.fromSeq = 0
  }

  /** Whether nothing that is sent from here on, the batch in hand included, holds what the change concerns. */
  covers(id: string, openCut: { readonly from: number } | null): boolean {
    const held = this.#held.find((each) => each.id === id)
    return held === undefined || openCut === null || openCut.from >= held.fromSeq
  }

  /** Everything up to `seq` is stored. */
  drop(seq: number): void {
    this.#held = this.#held.filter(({ toSeq }) => toSeq > seq)
  }

  stillWanted(parts: readonly NumberedParts[]): StillWanted {
    if (this.#held.length === 0)
      return {
        leftOut: [],
        templates: parts.flatMap((part) => part.templates),
        registrations: parts.flatMap((part) => part.registrations),
        again: [],
      }
    const looked = parts.map((part) => this.#look(part))
    const kept = new Set(looked.flatMap((each) => [...each.kept]))
    const isWanted = (seq: number, source: string): boolean =>
      kept.has(source) || !this.#deletions(seq).some((held) => concerns(held, source))
    const registrations = parts.flatMap((part) =>
      part.registrations.filter(({ name }) => isWanted(part.seq, name)),
    )
    return {
      leftOut: looked.flatMap((each) => each.leftOut),
      templates: parts.flatMap((part) =>
        part.templates.filter(({ source }) => isWanted(part.seq, source)),
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

  /** Whether a later correction of the same event takes the place of this statement. */
  isOvertaken(seq: number, statement: Statement): boolean {
    if (statement.kind !== 'correct-event') return false
    return this.#concerning(seq).some(
      ({ change }) => change.kind === 'correct-event' && change.event === statement.correction.id,
    )
  }

  #concerning(seq: number): readonly Held[] {
    return this.#held.filter((held) => held.fromSeq <= seq && seq < held.toSeq)
  }

  /** The entry of the change itself may hold templates and registrations from before it. */
  #deletions(seq: number): readonly Held[] {
    return this.#held.filter(
      (held) => held.fromSeq <= seq && seq <= held.toSeq && held.change.kind !== 'correct-event',
    )
  }

  #look(part: NumberedParts): Looked {
    const deletions = this.#deletions(part.seq)
    if (deletions.length === 0) return NOTHING
    const landing = part.landing === null ? null : readBlock(part.landing)
    const dead = part.dead === null ? null : readBlock(part.dead)
    const kept = new Set<string>()
    const isGone = (block: NativeBlock, row: number): boolean => {
      const source = block.text('source', row) ?? ''
      const receivedMs = block.number('received_at', row) ?? 0
      const about = deletions.filter((held) => concerns(held, source))
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
        ...runsOf(part.seq, 'landing', landing, isGone),
        ...runsOf(part.seq, 'dead_letters', dead, isCleared),
      ],
      kept,
    }
  }
}

const concerns = ({ change }: SharedStatement, source: string): boolean =>
  change.kind === 'clear-all' ||
  (change.kind === 'delete-sources' && change.sources.includes(source))

/** The rows that are left out, as runs. */
function runsOf(
  seq: number,
  table: RowTable,
  block: NativeBlock | null,
  isGone: (block: NativeBlock, row: number) => boolean,
): readonly RefusedRows[] {
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
