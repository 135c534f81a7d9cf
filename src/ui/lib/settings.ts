import { computed, effect, signal } from '@preact/signals'

/** The user's settings for this browser; all other state is in the address. */
function kept<T extends string>(name: string, fallback: T) {
  const own = signal((localStorage.getItem(name) as T | null) ?? fallback)
  effect(() => {
    if (own.value === fallback) localStorage.removeItem(name)
    else localStorage.setItem(name, own.value)
  })
  return own
}

export const theme = kept<'auto' | 'light' | 'dark'>('theme', 'auto')
const dark = matchMedia('(prefers-color-scheme: dark)')
const isSystemDark = signal(dark.matches)
dark.addEventListener('change', ({ matches }) => {
  isSystemDark.value = matches
})
/** The visible theme, for canvases, which style sheets do not apply to. */
export const shownTheme = computed(() =>
  theme.value === 'auto' ? (isSystemDark.value ? 'dark' : 'light') : theme.value,
)
/** An IANA name; '' for the browser's own zone. */
export const zone = kept<string>('zone', '')
export const density = kept<'compact' | 'roomy'>('density', 'compact')
export const wrapping = kept<'off' | 'on'>('wrap', 'off')
/** On a narrow screen the fields are shown on demand. */
const isNarrow = matchMedia('(width < 640px)').matches
export const sidebar = kept<'open' | 'closed'>('fields', isNarrow ? 'closed' : 'open')
/** Recently run queries, newest first, as JSON. */
export const recent = kept<string>('recent', '[]')

effect(() => {
  document.documentElement.dataset['theme'] = theme.value
})
