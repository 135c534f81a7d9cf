import type { IconName } from './icon-names.js'

declare const SPRITE_URL: string

/** A decorative icon: the text or label beside it has its meaning. */
export function Icon({ name, size = 16 }: { readonly name: IconName; readonly size?: number }) {
  return (
    <svg class="icon" width={size} height={size} aria-hidden="true">
      <use href={`${SPRITE_URL}#${name}`} />
    </svg>
  )
}
