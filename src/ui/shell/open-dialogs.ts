import { signal } from '@preact/signals'

/** Which dialogs are shown; the dialogs themselves are loaded then. */
export const isPaletteOpen = signal(false)
export const areKeysOpen = signal(false)

export const openPalette = (): void => {
  isPaletteOpen.value = true
}

export const openKeys = (): void => {
  areKeysOpen.value = true
}
