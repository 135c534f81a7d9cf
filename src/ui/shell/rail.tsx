import { Icon } from '../lib/icon.js'
import { addressOf, place } from '../lib/router.js'
import { Mark } from './mark.js'
import { SCREENS } from './screens.js'

/** The parameters of the time range, which all screens share. */
const kept = (): URLSearchParams =>
  new URLSearchParams([...place.value.params].filter(([name]) => /^(?:from|to)$/.test(name)))

/** The address of a single event belongs to Explore. */
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
