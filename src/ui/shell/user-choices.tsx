import { Icon } from '../lib/icon.js'
import { logOut } from '../lib/log-in.js'
import { user } from '../lib/session.js'
import { theme } from '../lib/settings.js'
import { openKeys } from './open-dialogs.js'

const THEMES = [
  { value: 'auto', icon: 'monitor', label: 'As the system' },
  { value: 'light', icon: 'sun', label: 'Light' },
  { value: 'dark', icon: 'moon', label: 'Dark' },
] as const

/** The user menu: the account, the theme, the keys and logging out. */
export const UserChoices = ({ close }: { readonly close: () => void }) => (
  <>
    <p class="who">
      <strong>{user.value?.email}</strong>
      <span>{user.value?.role}</span>
    </p>
    <div class="segments" role="group" aria-label="Theme">
      {THEMES.map(({ value, icon, label }) => (
        <button
          key={value}
          aria-pressed={theme.value === value}
          aria-label={label}
          title={label}
          onClick={() => {
            theme.value = value
          }}
        >
          <Icon name={icon} />
        </button>
      ))}
    </div>
    <button
      class="item"
      onClick={() => {
        close()
        openKeys()
      }}
    >
      <Icon name="info" /> Keys <kbd>?</kbd>
    </button>
    <button class="item" onClick={() => void logOut()}>
      <Icon name="log-out" /> Log out
    </button>
  </>
)
