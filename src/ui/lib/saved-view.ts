import type { SavedViewFields } from '../../model/saved-view.js'

/** A view as the API gives it. */
export interface SavedView extends SavedViewFields {
  readonly id: string
  readonly owner_id: string
}

export type ViewKind = SavedViewFields['kind']
