import type { IconName } from './icon-names.js'

declare const SPRITE_URL: string

/** An icon for the eye only: what it means is said by the text or the label beside it. */
export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg class="icon" width={size} height={size} aria-hidden="true">
      <use href={`${SPRITE_URL}#${name}`} />
    </svg>
  )
}
