import { signal } from '@preact/signals'

import type { Draft } from '../incidents/incident-answers.js'

/** Which dialogs are shown; the dialogs themselves are loaded then. */
export const isPaletteOpen = signal(false)
export const areKeysOpen = signal(false)
/** The incident that is about to be opened. */
export const draft = signal<Draft | null>(null)

interface Exporting {
  readonly rows: number
  readonly bytes: number
  readonly total: number | null
  readonly cancel: () => void
}
/** The export that is under way. */
export const exporting = signal<Exporting | null>(null)

export const openPalette = (): void => {
  isPaletteOpen.value = true
}

export const openKeys = (): void => {
  areKeysOpen.value = true
}

/** Whether a dialog is on its way: what is typed meanwhile is not meant for the page. */
export const isDialogOpening = (): boolean =>
  isPaletteOpen.value || areKeysOpen.value || draft.value !== null
