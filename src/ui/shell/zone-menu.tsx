import { Icon } from '../lib/icon.js'
import { zone } from '../lib/settings.js'
import { clock } from '../lib/time.js'
import { Menu } from './menu.js'

const own = Intl.DateTimeFormat().resolvedOptions().timeZone

const nameOf = (value: string): string => (value === '' ? 'Local' : value.replaceAll('_', ' '))

/** Chooses the time zone of every time on the page. */
export function ZoneMenu() {
  const choose = (value: string, close: () => void): void => {
    if (value !== '' && !isZone(value)) return
    zone.value = value
    close()
  }
  return (
    <Menu
      label={`Time zone: ${nameOf(zone.value)}`}
      class="quiet zone"
      face={
        <>
          <Icon name="globe" />
          <span>{zone.value === '' ? 'Local' : nameOf(zone.value).split('/').at(-1)}</span>
        </>
      }
    >
      {(close) => (
        <>
          {['', 'UTC'].map((value) => (
            <button key={value} class="item" onClick={() => choose(value, close)}>
              {value === '' ? `Local (${own})` : value}
              <time>{clock(Date.now(), value)}</time>
              {zone.value === value && <Icon name="check" />}
            </button>
          ))}
          <label class="field">
            Another zone
            <input
              list="zones"
              placeholder="Europe/Berlin"
              spellcheck={false}
              onChange={({ currentTarget }) => choose(currentTarget.value.trim(), close)}
            />
          </label>
          <datalist id="zones">
            {Intl.supportedValuesOf('timeZone').map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </>
      )}
    </Menu>
  )
}

function isZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).format(0) !== ''
  } catch {
    return false
  }
}
