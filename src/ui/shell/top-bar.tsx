import type { ComponentChildren } from 'preact'

import { Icon } from '../lib/icon.js'
import { lazy } from '../lib/lazy.js'
import { zone } from '../lib/settings.js'
import { Menu } from './menu.js'
import { openPalette } from './open-dialogs.js'
import { Status } from './status.js'

const isMac = navigator.platform.startsWith('Mac')

const UserChoices = lazy(async () => (await import('../later.js')).UserChoices)
const ZoneChoices = lazy(async () => (await import('../later.js')).ZoneChoices)

interface TopBarProps {
  readonly title: string
  readonly children?: ComponentChildren
}

/** The header of every screen: its name, its own controls, and those of all screens. */
export function TopBar({ title, children }: TopBarProps) {
  const zoneName = zone.value === '' ? 'Local' : zone.value.replaceAll('_', ' ')
  return (
    <header class="top-bar">
      <h1>{title}</h1>
      <div class="own">{children}</div>
      <Status />
      <button class="find" onClick={openPalette}>
        <Icon name="search" size={14} />
        <span>Find</span>
        <kbd>{isMac ? '⌘' : 'Ctrl '}K</kbd>
      </button>
      <Menu
        label={`Time zone: ${zoneName}`}
        class="quiet zone"
        face={
          <>
            <Icon name="globe" />
            <span>{zoneName.split('/').at(-1)}</span>
          </>
        }
      >
        {(close) => <ZoneChoices close={close} />}
      </Menu>
      <Menu label="Theme, keys and logout" face={<Icon name="user" />} class="quiet square">
        {(close) => <UserChoices close={close} />}
      </Menu>
    </header>
  )
}
