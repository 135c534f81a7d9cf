/* Notes of users on templates, and the history of corrected priorities. */

import { Type, type Static } from '@sinclair/typebox'

import { PrioritySchema } from '../model/schemas.js'
import type { Records } from './newest-first.js'

const TemplateNote = Type.Object({
  text: Type.String(),
  actorId: Type.String(),
  atMs: Type.Integer(),
})

const TemplateCorrection = Type.Object({
  eventId: Type.Integer(),
  priority: PrioritySchema,
  reason: Type.String(),
  actorId: Type.String(),
  atMs: Type.Integer(),
})

export const TemplateNotesDoc = Type.Object({
  /** The id of the template. */
  id: Type.String(),
  source: Type.String(),
  note: Type.Union([TemplateNote, Type.Null()]),
  /** The newest first. */
  corrections: Type.Array(TemplateCorrection),
})
export type TemplateNotesRecord = Readonly<Static<typeof TemplateNotesDoc>>

const MOST_CORRECTIONS = 50

interface Described {
  readonly id: string
  readonly source: string
}

/** Every change may reject with `dependency_unavailable`. */
export function createTemplateNotes(records: Records<TemplateNotesRecord>, nowMs = Date.now) {
  const change = async (
    { id, source }: Described,
    edit: (current: TemplateNotesRecord) => TemplateNotesRecord,
  ): Promise<void> => {
    await records.update(id, (current) =>
      edit(current ?? { id, source, note: null, corrections: [] }),
    )
  }
  return {
    of: (id: string): TemplateNotesRecord | null => records.get(id) ?? null,
    /** @param text '' deletes the note */
    write: (template: Described, actorId: string, text: string): Promise<void> =>
      change(template, (current) => ({
        ...current,
        note: text === '' ? null : { text, actorId, atMs: nowMs() },
      })),
    corrected: (
      template: Described,
      correction: Omit<TemplateNotesRecord['corrections'][number], 'atMs'>,
    ): Promise<void> =>
      change(template, (current) => ({
        ...current,
        corrections: [{ ...correction, atMs: nowMs() }, ...current.corrections].slice(
          0,
          MOST_CORRECTIONS,
        ),
      })),
    async removeForSources(names: readonly string[]): Promise<void> {
      const gone = new Set(names)
      for (const { id, source } of records.list()) if (gone.has(source)) await records.remove(id)
    },
    clear: () => records.clear(),
  }
}
