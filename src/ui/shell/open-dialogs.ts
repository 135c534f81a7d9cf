import { signal } from '@preact/signals'

import type { Draft } from '../incidents/incident-answers.js'

/** Which dialogs are open; their scripts are loaded on demand. */
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
/** The running export. */
export const exporting = signal<Exporting | null>(null)

export const openPalette = (): void => {
  isPaletteOpen.value = true
}

export const openKeys = (): void => {
  areKeysOpen.value = true
}

/** Whether a dialog is loading; keys typed meanwhile are not meant for the page. */
export const isDialogOpening = (): boolean =>
  isPaletteOpen.value || areKeysOpen.value || draft.value !== null
