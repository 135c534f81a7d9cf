import type { SavedViewFields } from '../../model/saved-view.js'

/** A saved view in the form of the API. */
export interface SavedView extends SavedViewFields {
  readonly id: string
  readonly owner_id: string
}

export type ViewKind = SavedViewFields['kind']
