import { Icon } from '../lib/icon.js'
import { zone } from '../lib/settings.js'
import { clock } from '../lib/time.js'

const own = Intl.DateTimeFormat().resolvedOptions().timeZone

/** The time zone of every time on the page: the browser's own, UTC, or any other. */
export function ZoneChoices({ close }: { readonly close: () => void }) {
  const choose = (value: string): void => {
    if (value !== '' && !isZone(value)) return
    zone.value = value
    close()
  }
  return (
    <>
      {['', 'UTC'].map((value) => (
        <button key={value} class="item" onClick={() => choose(value)}>
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
          onChange={({ currentTarget }) => choose(currentTarget.value.trim())}
        />
      </label>
      <datalist id="zones">
        {Intl.supportedValuesOf('timeZone').map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  )
}

function isZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).format(0) !== ''
  } catch {
    return false
  }
}
