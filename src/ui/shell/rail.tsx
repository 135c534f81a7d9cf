import { Icon } from '../lib/icon.js'
import { addressOf, place } from '../lib/router.js'
import { Mark } from './mark.js'
import { SCREENS } from './screens.js'

/** Parameters that mean the same on every screen. */
const SHARED = ['from', 'to'] as const

function kept(): URLSearchParams {
  const params = new URLSearchParams()
  for (const name of SHARED) {
    const value = place.value.params.get(name)
    if (value !== null) params.set(name, value)
  }
  return params
}

/** An event alone is shown in Explore. */
const isOf = (screen: string, path: string): boolean =>
  path.startsWith(screen) || (screen === '/explore' && path.startsWith('/events/'))

export function Rail() {
  const { path } = place.value
  return (
    <nav class="rail" aria-label="Screens">
      <a class="home" href="/" aria-label="Start">
        <Mark />
      </a>
      {SCREENS.map((screen) => (
        <a
          key={screen.path}
          href={addressOf(screen.path, kept())}
          aria-current={isOf(screen.path, path) ? 'page' : undefined}
        >
          <Icon name={screen.icon} size={18} />
          <span>{screen.name}</span>
        </a>
      ))}
      <a class="docs" href="/docs">
        <Icon name="circle-help" size={18} />
        <span>Docs</span>
      </a>
    </nav>
  )
}
