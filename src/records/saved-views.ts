/* Saved views: named addresses of the page's screens, for one user or for all. */

import { randomUUID } from 'node:crypto'

import { Type, type Static } from '@sinclair/typebox'

import { AppError } from '../model/errors.js'
import { SavedViewFields } from '../model/saved-view.js'
import type { Records } from './newest-first.js'
import { pageOldestFirst, type PageQuery } from './page.js'

export const SavedViewDoc = Type.Object({
  id: Type.String(),
  createdAtMs: Type.Integer(),
  updatedAtMs: Type.Integer(),
  ownerId: Type.String(),
  fields: SavedViewFields,
})
export type SavedView = Readonly<Static<typeof SavedViewDoc>>

/** The calling user. */
export interface Viewer {
  readonly id: string
  /** Whether views for all may be changed. */
  readonly maySetForAll: boolean
}

/** The most views of each user or API token. */
export const MAX_SAVED_VIEWS = 200

/** Every change may reject with `dependency_unavailable`. */
export function createSavedViews(records: Records<SavedView>, nowMs = Date.now) {
  const seen = ({ id }: Viewer): readonly SavedView[] =>
    records.list().filter(({ ownerId, fields }) => fields.is_for_all || ownerId === id)
  /** Unsets the previous default: a screen has one default view for each user and one for all. */
  const endOtherDefaults = async ({ id, ownerId, fields }: SavedView): Promise<void> => {
    if (!fields.is_default) return
    const others = records
      .list()
      .filter(
        (one) =>
          one.id !== id &&
          one.fields.is_default &&
          one.fields.screen === fields.screen &&
          one.fields.is_for_all === fields.is_for_all &&
          (fields.is_for_all || one.ownerId === ownerId),
      )
    for (const other of others)
      await records.update(other.id, (current) =>
        current === null ? null : { ...current, fields: { ...current.fields, is_default: false } },
      )
  }
  const changeable = (viewer: Viewer, id: string): SavedView => {
    const view = seen(viewer).find((one) => one.id === id) ?? refuseMissing(id)
    if (view.fields.is_for_all) refuseUnlessForAll(viewer)
    return view
  }
  return {
    page: (viewer: Viewer, query: PageQuery) => pageOldestFirst(seen(viewer), query),
    /** @throws AppError forbidden, overloaded */
    async create(viewer: Viewer, fields: SavedViewFields): Promise<SavedView> {
      if (fields.is_for_all) refuseUnlessForAll(viewer)
      const atMs = nowMs()
      const facts = { id: randomUUID(), createdAtMs: atMs, updatedAtMs: atMs, ownerId: viewer.id }
      const view: SavedView = { ...facts, fields }
      await records.update(view.id, () => view)
      await endOtherDefaults(view)
      return view
    },
    /** @throws AppError forbidden, not_found */
    async replace(viewer: Viewer, id: string, fields: SavedViewFields): Promise<SavedView> {
      changeable(viewer, id)
      if (fields.is_for_all) refuseUnlessForAll(viewer)
      const view = await records.update(id, (current) =>
        current === null ? null : { ...current, updatedAtMs: nowMs(), fields },
      )
      if (view === null) return refuseMissing(id)
      await endOtherDefaults(view)
      return view
    },
    /** @throws AppError forbidden, not_found */
    async remove(viewer: Viewer, id: string): Promise<void> {
      changeable(viewer, id)
      if (!(await records.remove(id))) refuseMissing(id)
    },
    /** Deletes the private views of a user. */
    async removeOf(userId: string): Promise<void> {
      for (const { id, ownerId, fields } of records.list())
        if (ownerId === userId && !fields.is_for_all) await records.remove(id)
    },
  }
}

function refuseUnlessForAll({ maySetForAll }: Viewer): void {
  if (!maySetForAll)
    throw new AppError('forbidden', 'a view for all is set by a manager', {
      details: { required_role: 'manager' },
    })
}

function refuseMissing(id: string): never {
  throw new AppError('not_found', 'there is no such saved view', { details: { view_id: id } })
}
